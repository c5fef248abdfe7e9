"""The cap: what counts, and which limit is reached."""

from __future__ import annotations

import pytest

from rc1_lib.config.curriculum import Cap
from rc1_lib.training.callbacks.cap import USD, Spent, spent_in

LINES = [{"step": step, "sec_per_step": 1800.0, USD: 0.25} for step in (1, 2, 3)]


def test_later_steps_do_not_count() -> None:
    assert spent_in(LINES, 2) == Spent(hours=1.0, usd=0.5)
    assert spent_in([{"step": 1, "sec_per_step": 3600.0}], 1) == Spent(hours=1.0), "an engine without a judge"


@pytest.mark.parametrize(
    ("hours", "usd", "message"),
    [
        (None, None, ""),
        (1.6, 0.76, ""),
        (1.5, None, "training.cap.hours is 1.5"),
        (None, 0.75, "training.cap.usd is 0.75"),
    ],
)
def test_reached_limit_is_named(hours: float | None, usd: float | None, message: str) -> None:
    found = spent_in(LINES, 3).reaches(Cap(hours=hours, usd=usd))
    assert (found == "") == (message == "") and message in found
