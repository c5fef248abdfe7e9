"""Processes of `accelerate launch` or `torchrun`: they end with the bytes of one process, and failures are reported."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ranks import group as groups
from rc1_lib.training.ranks.group import Group
from rc1_lib.training.ranks.launched import Launch, forget_launch, join, launch_of
from rc1_lib.training.ranks.shards import processes_of
from tests.forks import Forks
from tests.training.ranks import launches
from tests.training.ranks.launches import SHARDS, started
from tests.training.test_ppo_run import go

Tiny = Callable[..., Run]
ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def end_of(run: Run) -> str:
    return fingerprint(run.workspace.path(f"checkpoints/rc1/step_{launches.LAST:05d}"))


def test_two_launched_processes_end_with_the_bytes_of_one(tiny: Tiny, forks: Forks) -> None:
    one, two = (tiny(SHARDS, "training.processes=1", name=name) for name in ("one", "two"))
    both = started(forks, two.workspace.root, 2)
    go(one, launches.LAST)
    assert [process.wait() for process in both] == [0, 0], [process.read_output()[-2000:] for process in both]
    assert end_of(one) == end_of(two)


@pytest.mark.parametrize("environment", [{}, ADDRESS, ADDRESS | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}])
def test_process_without_a_launcher_or_alone_is_not_a_launch(environment: dict[str, str]) -> None:
    assert launch_of(environment) is None


def test_launch_is_read_from_the_environment_and_removed_from_it() -> None:
    launcher = ADDRESS | {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}
    assert launch_of(launcher) == Launch(rank=5, size=8, local=1)
    own = {"HOME": "/root", "ROLE_OF_THIS_MACHINE": "training"}
    launcher |= {"ACCELERATE_MIXED_PRECISION": "no", "TORCHELASTIC_RUN_ID": "none", "GROUP_RANK": "0"}
    environment = launcher | own
    forget_launch(environment)
    assert environment == own


ELSEWHERE = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}


@pytest.mark.parametrize(
    "odd", [{"RANK": "2"}, {"RANK": "-1"}, {"RANK": "first"}, {"WORLD_SIZE": ""}, ELSEWHERE], ids=str
)
def test_environment_with_invalid_numbers_or_of_several_machines_is_rejected(odd: dict[str, str]) -> None:
    environment = ADDRESS | {"RANK": "0", "WORLD_SIZE": "2"} | odd
    with pytest.raises(RC1Error, match=", ".join(f"{name}={value}" for name, value in odd.items())):
        launch_of(environment)


def test_first_process_that_cannot_listen_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    groups._close()  # of another test

    def never(_: Group) -> None: ...

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", port)
        with pytest.raises(RC1Error, match=rf":{port} \(.*EADDRINUSE"):
            join(Launch(rank=0, size=2, local=0), never)


def test_shards_that_processes_cannot_share_evenly_are_rejected(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rc1_lib.training.ranks.shards.launched_group", lambda: SimpleNamespace(size=3))
    assert processes_of(tiny("training.shards=6", "training.processes=1").config.training) == 3
    with pytest.raises(ConfigError, match=r"training\.shards: .* 2, expected a multiple of 3, "):
        go(tiny(SHARDS), 1)
