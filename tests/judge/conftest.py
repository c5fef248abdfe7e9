"""Shared by the tests of scoring: a workspace with a judge, and a gateway with scripted replies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge.bench import PLANTED, Bench
from tests.judge.gateway import Gateway, running_gateway


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """A running gateway."""
    with running_gateway() as gateway:
        yield gateway


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty workspace with a judge."""
    return Bench(tmp_path / "workspace")


@pytest.fixture
def planted_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an API key that must not appear anywhere."""
    monkeypatch.setenv("SCORER_API_KEY", PLANTED)
