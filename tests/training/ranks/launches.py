"""Trainings in processes of a launcher, and how tests start them."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from tests.forks import Fork, Forks

SHARDS = "training.shards=2"
LAST = 4
TWO = ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "-m")


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
    from rc1_lib.training.ppo_run import advance, prepare
    from tests.training.tiny_world import tiny_run

    if _leads():
        prepared = prepare(tiny_run(Path(root), SHARDS))
        advance(prepared, prepared.run.config.seeds[0], LAST, lambda _: None)


if __name__ == "__main__":
    train(sys.argv[1])
