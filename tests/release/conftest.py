"""A run that may be released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rc1_lib.plots import page as charts
from rc1_lib.run import Run, open_run
from tests.once import copied, copy_of
from tests.trained import evaluated, trained


@pytest.fixture(scope="session")
def releasable(opened: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trained, evaluated, green. Never write into it: take `own`."""

    def make(root: Path) -> None:
        evaluated(trained(opened, root))

    root = copy_of("releasable", make, tmp_path_factory)
    return open_run(profile="local", workspace=root, overrides=opened.overrides)


@pytest.fixture
def own(releasable: Run, tmp_path: Path) -> Run:
    """A copy that a test may write into."""
    return copied(releasable, tmp_path / "workspace")


@pytest.fixture(autouse=True, scope="module")
def small_slides() -> Iterator[None]:
    """Slides of an eighth of the width: what they show is the same, and packing pixels is most of a page's time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(charts, "_SLIDE_DPI", 50)
        yield
