"""What the tests of scoring share: a workspace with a judge, and a gateway that does what a test wants."""

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
    """A workspace of the test's own with a judge in it."""
    return Bench(tmp_path / "workspace")


@pytest.fixture
def planted_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is to be seen nowhere."""
    monkeypatch.setenv("SCORER_API_KEY", PLANTED)
