"""Session fixtures: a small pool, and a workspace with a tiny trained base."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from rc1_lib.run import Run
from rc1_lib.training.chat_format import ChatFormat
from tests.forks import Forks, this_interpreter
from tests.once import copy_of
from tests.training.tiny_world import learned_tokenizer, pool_rows, tiny_run, write_workspace


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    """Restore the number of threads: engines set it, and the next test must not inherit it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def pool() -> list[dict[str, Any]]:
    """English rows. Never change one."""
    return pool_rows(30)


@pytest.fixture(scope="session")
def mixed_pool() -> list[dict[str, Any]]:
    """English and Chinese rows. Never change one."""
    return pool_rows(30, chinese=0.4)


@pytest.fixture(scope="session")
def form(mixed_pool: list[dict[str, Any]]) -> ChatFormat:
    """The chat format of a tokenizer like the bundled base's."""
    return ChatFormat(learned_tokenizer(mixed_pool))


@pytest.fixture(scope="session")
def tiny_workspace(tmp_path_factory: pytest.TempPathFactory, pool: list[dict[str, Any]]) -> Path:
    """A pool and a base. Never write into it: use `tiny`."""
    return copy_of("tiny", partial(write_workspace, rows=pool), tmp_path_factory)


@pytest.fixture
def tiny(tiny_workspace: Path, tmp_path: Path) -> Callable[..., Run]:
    """Makes a run in a copy of that workspace: `tiny("steps=2", name="other")`."""

    def make(*overrides: str, name: str = "workspace") -> Run:
        root = tmp_path / name
        if not root.exists():
            shutil.copytree(tiny_workspace, root)
        return tiny_run(root, *overrides)

    return make


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Forks:
    """Forks the trainings that tests kill."""
    return this_interpreter(tmp_path_factory.mktemp("forks"))
