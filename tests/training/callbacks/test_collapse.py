"""A run that is lost or teaches nothing: each bound by itself, steps in a row, and a resumed run that counts on."""

from __future__ import annotations

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
    SIGNS_OF_COLLAPSE,
    SIGNS_OF_WASTE,
    ZERO_STD,
    unseen,
)
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus, summary
from rc1_lib.training.callbacks.collapse import CollapseGuard, signs_of
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.trainer import Trainer

BOUNDS = Collapse(
    max_kl=1.0, min_entropy=0.005, max_same_answer=0.6, patience=3,
    max_clip_ratio=0.5, max_malformed=0.5, min_scores_std=0.01, max_frac_zero_std=0.9, wasted_patience=4,
)  # fmt: skip
WELL = {
    KL: 0.08, ENTROPY: 0.09, SAME_ANSWER: 0.2, CLIP_RATIO: 0.01, MALFORMED: 0.03, SCORES_STD: 0.3, ZERO_STD: 0.1,
}  # fmt: skip
AT_THE_BOUNDS = {
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
        (AT_THE_BOUNDS, ""),
        (dict.fromkeys(WELL), ""),
    ],
)
def test_each_bound_is_seen_by_itself(damage: dict[str, float | None], key: str) -> None:
    assert list(signs_of(WELL | damage, BOUNDS)) == [key] * bool(key)
    switched_off = BOUNDS.model_copy(update=dict.fromkeys((*SIGNS_OF_COLLAPSE, *SIGNS_OF_WASTE)))
    assert signs_of(WELL | damage, switched_off) == {}


def guarded(path: Path, steps: list[dict[str, float]], begun: int = 0) -> CollapseGuard:
    """The guard after these steps, until it ends the run; `begun` are on record before them."""
    guard = CollapseGuard(BOUNDS, path)
    trainer = SimpleNamespace(step=begun, stop_reason="")
    trainer.stop = lambda reason: setattr(trainer, "stop_reason", reason)
    guard.on_start(cast(Trainer, trainer))
    for damage in steps:
        trainer.step += 1
        metrics: dict[str, Any] = {**WELL, **damage}
        MetricsLog(path).append(trainer.step, metrics)
        guard.on_step(cast(Trainer, trainer), metrics)
        assert trainer.stop_reason == guard.reason
    return guard


def test_only_steps_in_a_row_end_a_run_and_a_resumed_one_counts_on(tmp_path: Path) -> None:
    path, one_answer = tmp_path / "metrics.jsonl", {SAME_ANSWER: 0.9}
    assert guarded(path, [one_answer, one_answer, {}, one_answer, one_answer]).reason == ""
    guard = guarded(path, [one_answer], begun=5)
    assert guard.since == 4 and guard.reason == (
        "the answers have collapsed: 90% of them are the same, at most 60% (training.collapse.max_same_answer),"
        " 3 steps in a row, since step 4: lower lr, raise kl_coef or the update's entropy_coef, or check what the "
        "reward pays for"
    )
    assert guarded(path, [{}], begun=3).state_dict() == {}


def test_each_bound_has_a_count_of_its_own_and_steps_that_teach_nothing_their_own_patience(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    cut, malformed = {CLIP_RATIO: 0.9}, {MALFORMED: 0.9}
    assert guarded(path, [cut, cut, malformed, malformed, cut, cut, cut]).reason == ""
    guard = guarded(path, [cut], begun=7)
    assert guard.since == 5 and "90% of the episodes are cut by a limit on tokens" in guard.reason
    guard.recall(7)
    assert guard.reason == "", "a run that goes back to an earlier step"


def outcome(answer: str) -> EpisodeOutcome:
    return EpisodeOutcome(EpisodeStatus.ANSWERED, answer, False, False, False, 0, 0, 1, 0, 0, 0, 9)


def test_one_answer_to_everything_is_measured_among_answers() -> None:
    one = [outcome("Yes"), outcome(" yes ")] * 9
    assert summary(one)[SAME_ANSWER] == 1.0
    several = [outcome(str(number)) for number in range(18)]
    assert summary([*one, *several])[SAME_ANSWER] == 0.5
    assert summary([*one, *[outcome("")] * 50])[SAME_ANSWER] == 1.0, "silence is no answer"
    assert SAME_ANSWER not in summary(one[:15]), "few answers say nothing"


def test_a_bound_is_unseen_where_no_step_has_its_figure() -> None:
    bounds = ("max_kl", "min_entropy", "max_same_answer")
    assert unseen(bounds, "torch_ppo", "ppo", 16) == unseen(bounds, "trl_ppo", "ppo", 16) == ()
    assert unseen(bounds, "torch_ppo", "ppo", 15) == ("max_same_answer",)
    assert unseen(bounds, "trl_dpo", "groups", 16) == ("min_entropy",)
    assert unseen(bounds, "pure_pt_sft", "sft", 16) == bounds
    assert unseen(bounds, "one_of_my_own", "ppo", 16) is None, "what it measures is not known yet"
