"""Figures of a part of the usage log: each share has the right denominator, and is None without one."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from rc1_lib.judge.store import LOG_SCHEMA
from rc1_lib.judge.usage import usage_figures


def lines(*given: dict[str, Any]) -> pl.DataFrame:
    usual = {"run_id": "r", "dialogue": "d", "sample": 0, "outcome": "ok", "latency_ms": 10.0, "cost_usd": 0.01}
    return pl.DataFrame([{**dict.fromkeys(LOG_SCHEMA), **usual, **one} for one in given], schema=LOG_SCHEMA)


def scored(dialogue: str, sample: int, score: float, **changes: Any) -> dict[str, Any]:
    return {"dialogue": dialogue, "sample": sample, "scores": f'{{"answered":{score}}}', **changes}


def test_each_figure_has_the_right_denominator() -> None:
    found = usage_figures(
        lines(
            scored("a", 0, 0.1, latency_ms=10.0), scored("a", 1, 0.9, latency_ms=20.0), scored("b", 0, 0.5),
            scored("b", 1, 0.5, outcome="hit", latency_ms=0.1, cost_usd=0.0), scored("c", 0, 0.5, latency_ms=400.0),
            {"outcome": "rate_limited", "latency_ms": 1.0, "cost_usd": 0.0},
            {"outcome": "timeout", "latency_ms": 9e4, "cost_usd": None},
        ),
        0.05,
    )  # fmt: skip
    assert (found.scores, found.calls) == (5, 6)
    assert found.hit_rate == 1 / 5
    assert found.share_429 == 1 / 5, "a timeout is neither an answer nor a refusal"
    assert (found.latency_ms_median, found.latency_ms_p95) == (15.0, 400.0)
    assert found.usd == pytest.approx(0.04)
    assert found.cost_unknown == 1
    assert found.unstable == 1 / 2, "c has one sample, so its variance is unknown"


def test_samples_of_two_runs_are_not_combined() -> None:
    twice = lines(*(scored("a", n, run, run_id=str(run)) for run in (0.1, 0.9) for n in (0, 1)))
    assert usage_figures(twice, 0.05).unstable == 0.0
