"""Trainings in processes of a launcher, and how tests start them."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from rc1_lib.training.ranks.group import Call, Channel
from tests.forks import Fork, Forks

SHARDS = "training.shards=2"
LAST = 4
DIES_IN = "RC1_TESTS_DIES_IN_STEP"
"""Environment variable of a launcher: the step in which its second process kills itself."""


def started(forks: Forks, root: Path, size: int) -> list[Fork]:
    """Start `size` processes by rank with the environment that `torchrun` sets."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    return [
        forks.start(f"{__name__}.train", root, environment=world | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(size)
    ]


def train(root: str) -> None:
    """Join as `rc1 train` does; the first process trains the run to its last step."""
    from rc1_lib.cli import _leads
    from rc1_lib.errors import RC1Error
    from rc1_lib.training.ppo_run import advance, prepare
    from tests.training.tiny_world import tiny_run

    if _leads():
        try:
            prepared = prepare(tiny_run(Path(root), SHARDS))
            advance(prepared, prepared.run.config.seeds[0], LAST, lambda _: None)
        except RC1Error as error:
            print(error)
            sys.exit(2)


def die_in(step: int) -> None:
    """Let this worker kill itself when it is called to train on that step, in which the first process also works."""
    original, steps = Channel.receive, 0

    def receive(channel: Channel) -> Any:
        nonlocal steps
        received = original(channel)
        steps += isinstance(received, Call) and received.function.__name__ == "_learn"
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return received

    Channel.receive = receive  # type: ignore[method-assign]


if __name__ == "__main__":
    if DIES_IN in os.environ and os.environ["RANK"] == "1":
        die_in(int(os.environ[DIES_IN]))
    train(sys.argv[1])
