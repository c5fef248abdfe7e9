"""A run that is ready for release."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.run import Run, open_run
from tests.once import copied, copy_of
from tests.trained import evaluated, trained


@pytest.fixture(scope="session")
def releasable(opened: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A trained run whose evaluation passed. Read only: a test that writes takes `own`."""

    def make(root: Path) -> None:
        evaluated(trained(opened, root))

    root = copy_of("releasable", make, tmp_path_factory)
    return open_run(profile="local", workspace=root, overrides=opened.overrides)


@pytest.fixture
def own(releasable: Run, tmp_path: Path) -> Run:
    """A copy of it that a test may write to."""
    return copied(releasable, tmp_path / "workspace")
