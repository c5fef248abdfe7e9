"""How the penalty changes which dialogue of a prompt is chosen, on cases worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.reward.ablation import Ablation, ablate

ALPHA, CAP = 0.07, 3


def dialogue(
    prompt: str, main: float | None, c: int, *, solved: bool = True, turns: int = 3, needs: bool = False,
    alpha: float = ALPHA,
) -> dict[str, Any]:  # fmt: skip
    return {
        "prompt": prompt, "main": main, "penalty": 0.0 if needs else alpha * min(c, CAP), "clarifications": c,
        "needs_clarification": needs, "solved": solved, "turns": turns,
    }  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides={"main": pl.Float64})


def run(rows: Sequence[dict[str, Any]]) -> Ablation:
    return ablate(table(rows), confidence=0.95, resamples=100, seed=1)


FOUR_PROMPTS = [
    dialogue("a", 0.90, 1, turns=4),  # asks needlessly and leads by less than the penalty: not chosen with it
    dialogue("a", 0.85, 0, turns=3, solved=False),
    dialogue("b", 0.95, 1, turns=5),  # leads by more: still chosen
    dialogue("b", 0.80, 0, turns=4),
    dialogue("c", 0.70, 0, turns=2),
    dialogue("d", 0.90, 1, turns=4, needs=True),  # no penalty
    dialogue("d", 0.89, 0, turns=3, needs=True, solved=False),
]


def test_the_figures_equal_those_worked_out_by_hand() -> None:
    found = run(FOUR_PROMPTS)
    without, with_penalty = found.overall.without, found.overall.with_penalty
    assert (without.overclar_rate, with_penalty.overclar_rate) == pytest.approx((2 / 3, 1 / 3))
    assert (without.success, with_penalty.success) == (1.0, 0.75)
    assert (without.avg_turns, with_penalty.avg_turns) == (15 / 4, 14 / 4)
    assert (without.ask_rate_where_needed, with_penalty.ask_rate_where_needed) == (1.0, 1.0)
    assert found.overall.rate_drop_pct == 50.0
    assert found.overall.turns_up == -0.25
    assert found.overall.success_drop_pp == 25.0
    counts = found.counts
    assert (counts.dialogues, counts.unscored, counts.prompts, counts.left_out) == (7, 0, 4, 0)
    assert (counts.with_choice, counts.nothing_missing, counts.differing) == (3, 3, 2)
    assert (counts.unavoidable, counts.changed) == (0, 1)


def test_tied_dialogues_share_their_prompt_equally() -> None:
    tied = [
        dialogue("a", 0.5, 0, turns=2, solved=False),
        dialogue("a", 0.5, 1, turns=3),
        dialogue("a", 0.5, 2, turns=4),
        dialogue("a", 0.1, 0, turns=9),
    ]
    found = run(tied)
    assert found.overall.without.overclar_rate == pytest.approx(2 / 3)
    assert found.overall.without.success == pytest.approx(2 / 3)
    assert found.overall.without.avg_turns == 3.0
    assert found.overall.with_penalty.overclar_rate == 0.0
    assert found.overall.rate_drop_pct == 100.0
    assert (found.overall.turns_up, found.overall.with_penalty.success) == (-1.0, 0.0)


def test_rewards_that_differ_by_rounding_tie() -> None:
    rows = [dialogue("a", 0.1 + 0.2, 0), dialogue("a", 0.3, 1)]
    assert rows[0]["main"] != rows[1]["main"]
    assert run(rows).overall.without.overclar_rate == 0.5
    # 0.87 with one needless question equals 0.8 without one.
    assert run([dialogue("a", 0.87, 1), dialogue("a", 0.80, 0)]).overall.with_penalty.overclar_rate == 0.5


def test_a_missing_score_is_never_chosen_and_a_prompt_without_scores_is_left_out() -> None:
    found = run(
        [
            dialogue("a", None, 1, turns=9),
            dialogue("a", 0.01, 0, turns=2),
            dialogue("b", None, 1, turns=9),
            dialogue("b", None, 0, turns=9),
        ]
    )
    assert (found.counts.unscored, found.counts.prompts, found.counts.left_out) == (3, 1, 1)
    assert (found.counts.with_choice, found.counts.differing) == (0, 0)
    assert found.overall.without.avg_turns == 2.0
    assert found.coverage == 0.25


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "got no dialogues"),
        ([dialogue("a", math.nan, 0)], "not a finite number"),
        ([dialogue("a", 0.5, 0), dialogue("a", 0.5, 0, needs=True)], "about the prompt 'a' disagree"),
    ],
)
def test_invalid_dialogues_raise_an_error_that_names_the_fault(rows: list[dict[str, Any]], words: str) -> None:
    frame = table(rows) if rows else table([dialogue("a", 0.5, 0)]).head(0)
    with pytest.raises(RC1Error, match=words):
        ablate(frame, confidence=0.95, resamples=100, seed=1)


def test_missing_columns_raise_an_error_that_names_them() -> None:
    with pytest.raises(RC1Error, match=r": turns, penalty$"):
        ablate(table(FOUR_PROMPTS).drop("penalty", "turns"), confidence=0.95, resamples=100, seed=1)
