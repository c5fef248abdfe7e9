"""The collapse guard: each limit alone, consecutive steps, and counts that survive a resume."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rc1_lib.config.curriculum import Collapse
from rc1_lib.config.step_metrics import (
    CLIP_RATIO,
    ENTROPY,
    KL,
    MALFORMED,
    SAME_ANSWER,
    SCORES_STD,
    ZERO_STD,
)
from rc1_lib.training.callbacks.collapse import CollapseGuard, signs_of
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.trainer import Trainer

PATIENCE = Collapse(patience=3, wasted_patience=4)
HEALTHY = {
    KL: 0.08, ENTROPY: 0.09, SAME_ANSWER: 0.2, CLIP_RATIO: 0.01, MALFORMED: 0.03, SCORES_STD: 0.3, ZERO_STD: 0.1,
}  # fmt: skip
AT_THE_LIMITS = {
    KL: 1.0, ENTROPY: 0.005, SAME_ANSWER: 0.6, CLIP_RATIO: 0.5, MALFORMED: 0.5, SCORES_STD: 0.01, ZERO_STD: 0.9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "key"),
    [
        ({}, ""),
        ({KL: 1.5}, "max_kl"),
        ({ENTROPY: 0.001}, "min_entropy"),
        ({SAME_ANSWER: 0.95}, "max_same_answer"),
        ({CLIP_RATIO: 1.0}, "max_clip_ratio"),
        ({MALFORMED: 0.6}, "max_malformed"),
        ({SCORES_STD: 0.0}, "min_scores_std"),
        ({ZERO_STD: 1.0}, "max_frac_zero_std"),
        (AT_THE_LIMITS, ""),
        (dict.fromkeys(HEALTHY), ""),
    ],
)
def test_each_limit_is_checked_alone(damage: dict[str, float | None], key: str) -> None:
    assert list(signs_of(HEALTHY | damage)) == [key] * bool(key)


def guarded(path: Path, steps: list[dict[str, float]], earlier: int = 0) -> CollapseGuard:
    """The guard after these steps, or when it ends the run; `earlier` steps are in the metrics."""
    guard = CollapseGuard(PATIENCE, path)
    trainer = SimpleNamespace(step=earlier, stop_reason="")
    trainer.stop = lambda reason: setattr(trainer, "stop_reason", reason)
    guard.on_start(cast(Trainer, trainer))
    for damage in steps:
        trainer.step += 1
        metrics: dict[str, Any] = {**HEALTHY, **damage}
        MetricsLog(path).append(trainer.step, metrics)
        guard.on_step(cast(Trainer, trainer), metrics)
        assert trainer.stop_reason == guard.reason
    return guard


def test_consecutive_steps_end_a_run_and_are_counted_across_a_resume(tmp_path: Path) -> None:
    path, one_answer = tmp_path / "metrics.jsonl", {SAME_ANSWER: 0.9}
    assert guarded(path, [one_answer, one_answer, {}, one_answer, one_answer]).reason == ""
    guard = guarded(path, [one_answer], earlier=5)
    assert guard.since == 4
    assert re.search(r" 90% .* 60% \(max_same_answer\), 3 steps .* step 4: .*kl_coef", guard.reason)
    assert guarded(path, [{}], earlier=3).state_dict() == {}


def test_each_limit_counts_separately_and_wasted_steps_have_their_own_patience(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    cut, malformed = {CLIP_RATIO: 0.9}, {MALFORMED: 0.9}
    assert guarded(path, [cut, cut, malformed, malformed, cut, cut, cut]).reason == ""
    guard = guarded(path, [cut], earlier=7)
    assert guard.since == 5 and re.search(r"\b90% .*\bmax_clip_ratio\b", guard.reason)
    guard.recall(7)
    assert guard.reason == "", "a run that returns to an earlier step"
