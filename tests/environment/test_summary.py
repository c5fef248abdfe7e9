"""Episode metrics: means over the episodes that count for them; missing without such episodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rc1_lib.config.step_metrics import EPISODE_FIGURES
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus, summary


def outcome(
    *, needs: bool = False, right: bool = False, asked: int = 0, turns: int = 2, hops: int = 0, errors: int = 0,
    malformed: int = 0, status: EpisodeStatus = EpisodeStatus.ANSWERED,
) -> EpisodeOutcome:  # fmt: skip
    return EpisodeOutcome(
        status=status, answer="", right=right, needs=needs, obtained=needs and asked > 0, asked=asked, off_target=0,
        turns=turns, hops=hops, tool_errors=errors, malformed=malformed, tokens=50,
    )  # fmt: skip


EPISODES = (
    outcome(needs=True, right=True, asked=1, turns=4, hops=2),  # solved
    outcome(needs=True, right=True, turns=2, hops=1),  # unsupported but correct
    outcome(right=True, asked=2, turns=5, hops=1, errors=3),  # solved, asked needlessly
    outcome(turns=1, malformed=2, status=EpisodeStatus.MALFORMED),
    outcome(turns=3, hops=4, status=EpisodeStatus.MAX_TOKENS),
)


def test_metric_is_the_mean_over_the_episodes_that_it_is_about() -> None:
    expected = {
        "env/success": 2 / 5, "env/success_needed": 1 / 2, "env/success_clear": 1 / 3, "env/right": 3 / 5,
        "env/right_needed": 2 / 2, "env/right_clear": 1 / 3, "env/lucky": 1 / 1, "env/asked_needed": 1 / 2,
        "env/asked_clear": 1 / 3, "env/malformed": 1 / 5, "env/tool_errors": 3 / 5, "num_turns/mean": 15 / 5,
        "tool_call_counts/mean": (8 + 3) / 5, "response_length/clip_ratio": 1 / 5,
    }  # fmt: skip
    found = summary(EPISODES)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_summary_has_exactly_the_metrics_that_a_configuration_may_name() -> None:
    answered = replace(EPISODES[0], answer="Yes")  # the metric of the most frequent answer needs at least 16 answers
    assert summary([*EPISODES, *[answered] * 16]).keys() == EPISODE_FIGURES
    assert len(summary(EPISODES)) == len(EPISODE_FIGURES) - 1


def test_right_without_asking_is_a_share_of_the_episodes_that_lack_the_missing_piece() -> None:
    wrong, asked = outcome(needs=True), outcome(needs=True, asked=1, right=True)
    assert summary([*EPISODES, wrong, wrong, asked])["env/lucky"] == pytest.approx(1 / 3)
    assert "env/lucky" not in summary([asked, outcome(right=True)])


def test_metric_without_an_episode_is_missing_not_zero() -> None:
    figures = summary([outcome(right=True)])
    assert not {"env/success_needed", "env/asked_needed"} & figures.keys()
    assert figures["env/success_clear"] == 1.0
    figures = summary([outcome(needs=True)])
    assert not {"env/success_clear", "env/asked_clear"} & figures.keys()
    assert figures["env/asked_needed"] == 0.0
