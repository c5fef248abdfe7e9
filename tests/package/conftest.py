"""One wheel per run of the suite, and a folder with its files per test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.once import copy_of

from .wheels import build_wheel, unpack


def _make(folder: Path) -> None:
    folder.mkdir()
    build_wheel(folder)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the current code."""
    (found,) = copy_of("wheel", _make, tmp_path_factory).glob("*.whl")
    return found


@pytest.fixture
def site(wheel: Path, tmp_path: Path) -> Path:
    """A folder with the wheel's files, as in an installation."""
    unpack(wheel, tmp_path / "site")
    return tmp_path / "site"
