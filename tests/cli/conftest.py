"""The program in this process, and one small pool that the tests share or copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rc1_lib.cli import main

SMALL = ("--set", "pool.n=150", "--set", "shadow.n=40", "--set", "pool.workers=1")
"""The embedded source writes this in about a second; every other setting is that of configs/local.yaml."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Rc1 = Callable[..., Done]


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUN_MODE", "BASE_MODEL", "SCORER_PROVIDER", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rc1(capsys: pytest.CaptureFixture[str]) -> Rc1:
    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = call(*arguments)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with shadow set, pool, metrics and balanced pool; read it, or copy it through `workspace`."""
    root = tmp_path_factory.mktemp("finished")
    for name in ("build-pool", "difficulty-metrics", "difficulty-bucketize"):
        assert call(name, "--workspace", str(root), *SMALL) == 0
    return root


@pytest.fixture
def workspace(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy that a test may damage."""
    root = tmp_path / "workspace"
    shutil.copytree(finished, root, ignore=shutil.ignore_patterns("logs"))
    yield root
