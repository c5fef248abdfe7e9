"""A run that is lost: each sign by itself, steps in a row, and a resumed run that counts on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rc1_lib.config.curriculum import Collapse
from rc1_lib.config.step_metrics import ENTROPY, KL, SAME_ANSWER, unseen
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.environment.summary import summary
from rc1_lib.training.callbacks.collapse import CollapseGuard, sign_of
from rc1_lib.training.diverged import CollapsedError, DivergedError
from rc1_lib.training.metrics_log import MetricsLog
from rc1_lib.training.trainer import Trainer

BOUNDS = Collapse(max_kl=1.0, min_entropy=0.005, max_same_answer=0.6, patience=3)
WELL = {KL: 0.08, ENTROPY: 0.09, SAME_ANSWER: 0.2}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({}, ""),
        ({KL: 1.5}, "the KL to the start has exploded"),
        ({ENTROPY: 0.001}, "the entropy has collapsed"),
        ({SAME_ANSWER: 0.95}, "the answers have collapsed: 95% of them"),
        ({KL: 1.0, ENTROPY: 0.005, SAME_ANSWER: 0.6}, ""),
        ({KL: None, ENTROPY: None, SAME_ANSWER: None}, ""),
    ],
)
def test_each_sign_is_named(damage: dict[str, float], words: str) -> None:
    found = sign_of(WELL | damage, BOUNDS)
    assert (found == "") == (words == "") and words in found
    nothing = Collapse(max_kl=None, min_entropy=None, max_same_answer=None, patience=1)
    assert sign_of(WELL | damage, nothing) == ""


def guarded(path: Path, values: list[float], begun: int = 0) -> CollapseGuard:
    """Steps with these shares of one answer, behind `begun` that are on record."""
    guard = CollapseGuard(BOUNDS, path)
    trainer = SimpleNamespace(step=begun)
    guard.on_start(cast(Trainer, trainer))
    for value in values:
        trainer.step += 1
        metrics: dict[str, Any] = {**WELL, SAME_ANSWER: value}
        MetricsLog(path).append(trainer.step, metrics)
        guard.on_step(cast(Trainer, trainer), metrics)
    return guard


def test_only_steps_in_a_row_end_a_run_and_a_resumed_one_counts_on(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    guarded(path, [0.9, 0.9, 0.2, 0.9, 0.9])
    with pytest.raises(CollapsedError, match="3 steps in a row, since step 4") as fault:
        guarded(path, [0.9], begun=5)
    assert fault.value.since == 4 and isinstance(fault.value, DivergedError)
    assert guarded(path, [0.2], begun=3).state_dict() == {}


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
