"""The program in this process, and one small pool that the tests share or copy."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
import typer

from deployments.access import Access, record_server
from rc1_lib.cli import main
from tests.groups import WITH_SERVER, group_of
from tests.judge import bench as judge
from tests.judge_server import Behaviour, JudgeServer, running
from tests.once import copy_of

SMALL = ("--set", "pool.n=150", "--set", "shadow.n=40", "--set", "pool.workers=1")
"""The embedded source writes this in about a second; every other setting is that of configs/local.yaml."""


NARROW = 80
"""Columns of a narrow terminal."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Rc1 = Callable[..., Done]
Served = Callable[[Path], None]


_the_commands = cache(typer.main.get_command)
"""Built once: these tests call the command hundreds of times."""


def call(*arguments: str) -> int:
    with patch.object(typer.main, "get_command", _the_commands), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def settings(overrides: Iterable[str]) -> list[str]:
    """`--set` for each of them."""
    return [word for one in overrides for word in ("--set", one)]


def judge_at(server: JudgeServer) -> list[str]:
    """The settings of a judge that is the test double."""
    return settings(judge.overrides(server.base_url))


def widest_table_line(out: str) -> int:
    """Columns of the widest line of a table with or without a frame."""
    return max(len(line) for line in out.splitlines() if line[:1] in "┏┃┡│└ ")


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def fits(text: str, root: Path) -> bool:
    """Whether tables fit into the terminal. Sentences and paths may be longer: the terminal wraps them."""
    gates = ("shadow_run: ", "reward_hacking: ", "calibration: ", "overclar_ablation: ", "answer_rule: ")
    wrapped = ("    ", "fail:  ", "what to do: ", *gates, *(f"  {name}" for name in gates))
    tables = [line for line in text.splitlines() if str(root) not in line and not line.startswith(wrapped)]
    return max(map(len, tables)) <= NARROW and "…" not in text


@pytest.fixture(autouse=True)
def default_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def rc1(capsys: pytest.CaptureFixture[str]) -> Rc1:
    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = call(*arguments)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    """A test double of a judge that answers at once."""
    with running(Behaviour(delay="zero")) as serving:
        yield serving


@pytest.fixture
def served(prefect_server: None, request: pytest.FixtureRequest) -> Iterator[Served]:
    """`served(root)` records the tests' server as the one of a workspace, so that no command starts another."""
    group = group_of(request.node.nodeid)
    assert group in WITH_SERVER, "name this test in tests/groups.py, or it starts another server"
    with serving() as serve:
        yield serve


@contextmanager
def serving() -> Iterator[Served]:
    """A function that records the tests' server as the one of a workspace."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    port = urlsplit(str(PREFECT_API_URL.value())).port
    assert port is not None
    server, before = Access(port, str(PREFECT_API_AUTH_STRING.value())), dict(os.environ)
    try:
        yield lambda root: record_server(root, server)
    finally:
        # A flow that a command runs leaves its workspace's settings in the environment.
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _finish(root: Path) -> None:
    for name in ("build-pool", "difficulty-metrics", "difficulty-bucketize"):
        assert call(name, "--workspace", str(root), *SMALL) == 0


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with shadow set, pool, metrics and balanced pool; read it, or copy it through `workspace`."""
    return copy_of("finished", _finish, tmp_path_factory)


@pytest.fixture
def workspace(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy that a test may damage."""
    root = tmp_path / "workspace"
    shutil.copytree(finished, root, ignore=shutil.ignore_patterns("logs"))
    yield root
