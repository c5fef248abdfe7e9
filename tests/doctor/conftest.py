"""A workspace with a ticket and a tiny base, ready for training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rc1_lib.run import Run, open_run
from tests.once import copied

FROM_OUTSIDE = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FROM_OUTSIDE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def own(opened: Run, tmp_path: Path) -> Run:
    """A copy that a test may damage."""
    return copied(opened, tmp_path / "workspace")


def with_settings(run: Run, *overrides: str) -> Run:
    """The same workspace with settings that its ticket does not allow."""
    changed = open_run(profile="local", workspace=run.workspace.root, overrides=(*run.overrides, *overrides))
    return replace(changed, vouched=run.vouched)
