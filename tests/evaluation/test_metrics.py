"""Every figure against numbers worked out by hand."""

from __future__ import annotations

import math

import polars as pl
import pytest

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.evaluation.episodes import EpisodeRecord, episode_frame
from rc1_lib.evaluation.metrics import FIGURES, figures, figures_by, statuses_by
from tests.evaluation.tables import episode, row, table


def six() -> list[EpisodeRecord]:
    """Prompts 0, 3 and 6 need asking, 1, 2 and 4 are clear; 18 and 19 are hard ones of HotpotQA."""
    return [
        episode(0, asked=1, obtained=True, turns=4),  # asked, got it, solved
        episode(3, asked=2, off_target=2, right=False, turns=5),  # asked for something else
        episode(6),  # a lucky guess
        episode(1),  # solved
        episode(2, asked=3, turns=6, tool_errors=2, malformed=1),  # solved, asked for nothing
        episode(4, right=False, status=EpisodeStatus.MAX_TURNS, turns=8, malformed=2, answer=""),
    ]


def test_every_figure_of_six_episodes() -> None:
    found = figures(six())
    expected = {
        "success": 3 / 6,
        "success_needed": 1 / 3,
        "success_clear": 2 / 3,
        "lucky": 1 / 6,
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
    assert set(FIGURES) - set(expected) == {"success_hard"}  # none of the six is hard, so it is left out


def test_the_hard_figure_looks_at_hotpotqa_and_strategyqa_together() -> None:
    hard = [
        episode(1, prompt=row(1, bucket="hard", task="hotpotqa")),
        episode(2, prompt=row(2, bucket="hard", task="strategyqa"), right=False),
        episode(4, prompt=row(4, bucket="hard", task="strategyqa"), right=False),
        episode(5, prompt=row(5, bucket="hard", task="gsm8k")),
        episode(7, prompt=row(7, bucket="medium", task="hotpotqa")),
    ]
    assert figures(hard)["success_hard"] == pytest.approx(1 / 3)


def test_precision_of_a_policy_that_never_asks_is_undefined_and_not_0_or_1() -> None:
    frame = episode_frame([episode(0), episode(1)])
    found = figures_by(frame, "policy").row(0, named=True)
    assert math.isnan(found["ask_precision"])
    assert "ask_precision" not in figures([episode(0), episode(1)])
    assert (found["ask_recall"], found["overclar_rate"]) == (0.0, 0.0)


def test_groups_are_measured_one_by_one() -> None:
    frame = table(prompts=54)
    found = figures_by(frame, "policy", "mode", "task")
    assert found.height == 2 * 2 * 3
    assert found["episodes"].to_list() == [18] * 12
    for group in found.iter_rows(named=True):
        alone = frame.filter(
            (pl.col("policy") == group["policy"])
            & (pl.col("mode") == group["mode"])
            & (pl.col("task") == group["task"])
        )
        assert group["success"] == alone["solved"].mean()
        assert group["turns"] == alone["turns"].mean()


def test_ends_are_counted_by_policy() -> None:
    assert statuses_by(episode_frame(six()), "policy") == {
        "ppo": {"answered": pytest.approx(5 / 6), "max_turns": pytest.approx(1 / 6)}
    }
