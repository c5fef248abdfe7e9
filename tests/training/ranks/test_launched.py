"""Processes that `accelerate launch` or `torchrun` started: the bytes of one process, and sentences where it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path

import pytest

from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ranks import launched
from rc1_lib.training.ranks.launch import Launch, forget_launch, launch_of
from rc1_lib.training.ranks.launched import LaunchedCrew
from rc1_lib.training.ranks.processes import processes_of
from tests.forks import Forks
from tests.training.ranks import launches
from tests.training.ranks.launches import SHARDS, started
from tests.training.test_ppo_run import go

Tiny = Callable[..., Run]
ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
SMALL = (
    "training.trial.steps=2", "batch_size=8", "rollout_len=12", "training.ppo.minibatches=2",
    "training.trial.narrower=2", "training.trial.layers=2", "training.limits.turns=1", SHARDS,
    "training.checkpoints.every_steps=1",
)  # fmt: skip


def losses(root: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (root / "reports/metrics.jsonl").read_text().splitlines()]


def test_two_launched_processes_end_with_the_losses_and_bytes_of_one(tiny: Tiny, forks: Forks) -> None:
    one, two = (tiny(SHARDS, "training.processes=1", name=name).workspace.root for name in ("one", "two"))
    both = started(forks, two, 2)
    go(tiny(SHARDS, "training.processes=1", name="one"), launches.LAST)
    assert [process.wait() for process in both] == [0, 0], [process.told()[-2000:] for process in both]
    assert len(losses(one)) == launches.LAST and losses(two) == losses(one)
    ends = {fingerprint(root / f"checkpoints/rc1/step_{launches.LAST:05d}") for root in (one, two)}
    assert len(ends) == 1


@pytest.mark.parametrize("environment", [{}, ADDRESS, ADDRESS | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}])
def test_without_a_launcher_or_alone_under_one_nothing_is_shared(environment: dict[str, str]) -> None:
    assert launch_of(environment) is None


def test_a_launcher_says_which_process_this_is_and_is_forgotten() -> None:
    said = ADDRESS | {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}
    assert launch_of(said) == Launch(rank=5, size=8, local=1)
    environment = said | {"ACCELERATE_MIXED_PRECISION": "no", "TORCHELASTIC_RUN_ID": "none", "HOME": "/root"}
    forget_launch(environment)
    assert environment == {"HOME": "/root"}


@pytest.mark.parametrize(("rank", "size"), [("2", "2"), ("-1", "2"), ("first", "2"), ("0", "")])
def test_an_environment_that_names_no_place_is_refused(rank: str, size: str) -> None:
    with pytest.raises(RC1Error, match=rf"the environment has RANK={rank}, WORLD_SIZE={size}.*RANK below WORLD_SIZE"):
        launch_of(ADDRESS | {"RANK": rank, "WORLD_SIZE": size})


def test_processes_that_the_shards_cannot_be_dealt_to_evenly_are_refused(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched, "_crew", LaunchedCrew([Pipe()[0], Pipe()[0]]))
    assert processes_of(tiny("training.shards=6", "training.processes=1").config.training) == 3
    with pytest.raises(ConfigError, match=r"training\.shards: found 2, but the launcher started 3 processes"):
        go(tiny(SHARDS), 1)


def launch(workspace: Path, *overrides: str) -> subprocess.Popen[str]:
    """`accelerate launch ... rc1 train --random-base`, in two processes."""
    settings = [word for override in (*SMALL, *overrides) for word in ("--set", override)]
    return subprocess.Popen(
        [
            sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2",
            "--main_process_port", "0", "-m", launches.__name__, "train", "--random-base",
            "--workspace", str(workspace), *settings,
        ],
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def follower_of(launcher: int) -> int:
    """The second of the processes that a launcher has started."""
    for pid in children(launcher):
        if b"RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes():
            return pid
    raise AssertionError(f"the launcher has started {children(launcher)}, none of which is the second")


@pytest.mark.long
def test_a_launched_process_that_is_killed_ends_training_in_a_sentence_and_the_next_launch_goes_on(
    tmp_path: Path,
) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    place = "checkpoints/trials/random-base"
    many = "training.trial.steps=40"
    with launch(broken, many) as process:
        metrics = broken / place / "reports/metrics.jsonl"
        until = time.monotonic() + 300
        while not metrics.exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        os.kill(follower_of(process.pid), signal.SIGKILL)
        told, _ = process.communicate()
    assert process.returncode == 1  # the launcher's own: it has lost a process
    assert "process 2 of 2 is gone, and what started it says how it ended" in told
    done = len(metrics.read_text().splitlines())
    assert 0 < done < 40
    for root in (broken, whole):
        with launch(root, many) as process:
            told, _ = process.communicate()
        assert process.returncode == 0, told[-3000:]
    assert fingerprint(broken / place / "checkpoints/rc1/step_00040") == fingerprint(
        whole / place / "checkpoints/rc1/step_00040"
    )
