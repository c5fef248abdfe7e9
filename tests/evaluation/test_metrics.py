"""Every figure of an evaluation against hand-computed numbers."""

from __future__ import annotations

import math

import polars as pl
import pytest

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.evaluation.episodes import EpisodeRecord, episode_frame
from rc1_lib.evaluation.metrics import FIGURES, statuses_by
from rc1_lib.evaluation.paired import contrast
from tests.evaluation.tables import episode, row


def six() -> list[EpisodeRecord]:
    """Prompts 0, 3 and 6 have missing information, 1, 2 and 4 do not."""
    return [
        episode(0, asked=1, obtained=True, turns=4),  # asked, got it, solved
        episode(3, asked=2, off_target=2, right=False, turns=5),  # asked for something else
        episode(6),  # unsupported but correct
        episode(1),  # solved
        episode(2, asked=3, turns=6, tool_errors=2, malformed=1),  # solved, asked needlessly
        episode(4, right=False, status=EpisodeStatus.MAX_TURNS, turns=8, malformed=2, answer=""),
    ]


def figures(records: list[EpisodeRecord]) -> dict[str, float]:
    """The defined figures of a policy's episodes, as a comparison reports them."""
    after = episode_frame(records)
    both = pl.concat([after.with_columns(policy=pl.lit("sft")), after])
    found = contrast(both, before="sft", after="ppo", confidence=0.95, resamples=2, seed=1).after
    return {name: one.value for name, one in found.items() if not math.isnan(one.value)}


def test_every_figure_matches_hand_value() -> None:
    found = figures(six())
    expected = {
        "success": 3 / 6,
        "success_needed": 1 / 3,
        "success_clear": 2 / 3,
        "right": 4 / 6,
        "right_needed": 2 / 3,
        "right_clear": 2 / 3,
        "lucky": 1 / 2,
        "declined": 0.0,
        "ask_recall": 2 / 3,
        "ask_precision": 2 / 3,
        "overclar_rate": 1 / 3,
        "ask_gap": 1 / 3,
        "needless_questions": 3 / 3,
        "obtained": 1 / 3,
        "off_target": 2 / 3,
        "turns": (4 + 5 + 3 + 3 + 6 + 8) / 6,
        "hops": 2.0,
        "tokens": 80.0,
        "tool_errors": 2 / 6,
        "malformed": 3 / 29,
    }
    assert found == pytest.approx(expected)
    assert set(FIGURES) - set(expected) == {"success_hard", "right_hard"}  # none of the six is hard


def test_hard_figure_pools_hotpotqa_and_strategyqa() -> None:
    hard = [
        episode(1, prompt=row(1, bucket="hard", task="hotpotqa")),
        episode(2, prompt=row(2, bucket="hard", task="strategyqa"), right=False),
        episode(4, prompt=row(4, bucket="hard", task="strategyqa"), right=False),
        episode(5, prompt=row(5, bucket="hard", task="gsm8k")),
        episode(7, prompt=row(7, bucket="medium", task="hotpotqa")),
    ]
    assert figures(hard)["success_hard"] == figures(hard)["right_hard"] == pytest.approx(1 / 3)


def test_precision_is_undefined_if_the_policy_never_asks() -> None:
    found = figures([episode(0), episode(1)])
    assert "ask_precision" not in found
    assert (found["ask_recall"], found["overclar_rate"]) == (0.0, 0.0)


def test_statuses_are_counted_by_policy() -> None:
    assert statuses_by(episode_frame(six()), "policy") == {
        "ppo": {"answered": pytest.approx(5 / 6), "max_turns": pytest.approx(1 / 6)}
    }
