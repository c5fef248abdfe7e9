"""A workspace with a ticket and a tiny base, ready for training."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from rc1_lib.doctor import machine
from rc1_lib.run import Run, open_run
from tests.once import copied

FROM_OUTSIDE = ("PREFECT_API_URL", "RC1_WEBHOOK_SECRET_URL", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FROM_OUTSIDE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def pinned_versions(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pin an installed version: the versions of this machine have their own test."""
    pins = tmp_path_factory.mktemp("pins") / "constraints.txt"
    pins.write_text(f"orjson=={version('orjson')}\n")
    monkeypatch.setattr(machine, "_CONSTRAINTS", str(pins))


@pytest.fixture
def own(opened: Run, tmp_path: Path) -> Run:
    """A copy that a test may damage."""
    return copied(opened, tmp_path / "workspace")


def with_settings(run: Run, *overrides: str) -> Run:
    """The same workspace with settings that its ticket does not allow."""
    changed = open_run(profile="local", workspace=run.workspace.root, overrides=(*run.overrides, *overrides))
    return replace(changed, vouched=run.vouched)
