"""A row's samples do not depend on other rows, their order, the batch size or padding."""

from __future__ import annotations

import pytest
from transformers import PreTrainedModel

from rc1_lib.training.rollout.roll_out import Batching, roll_out
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.rollout.standin import WIDE, StandInChat, same_numbers, sampling, starts

NUMBERS = [0, 9, 3, 0, 5, 1, 12, 2] * 3


def same(left: list[Trajectory], right: list[Trajectory], within: float = 1e-4) -> bool:
    return len(left) == len(right) and all(
        (a.ids, a.action_mask, a.turn_ends, a.outcome, a.messages)
        == (b.ids, b.action_mask, b.turn_ends, b.outcome, b.messages)
        and same_numbers(a.logprobs, b.logprobs, within)
        for a, b in zip(left, right, strict=True)
    )


@pytest.fixture(scope="module")
def played(chat: StandInChat, memorized: PreTrainedModel) -> list[Trajectory]:
    return roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), WIDE)


@pytest.mark.parametrize(
    "batching",
    [
        pytest.param(Batching(rows=1, prefill_tokens=4096), marks=pytest.mark.long),
        Batching(rows=5, prefill_tokens=4096),
        Batching(rows=7, prefill_tokens=1),
        Batching(rows=24, prefill_tokens=60),
    ],
)
def test_batch_sizes_of_rows_and_prompts_change_no_token(
    chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory], batching: Batching
) -> None:
    assert same(roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), batching), played)


def test_seed_and_iteration_decide_the_episodes(
    chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory]
) -> None:
    assert same(roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), WIDE), played, within=0.0)
    for other in (sampling(seed=4), sampling(iteration=2)):
        again = roll_out(memorized, chat, starts(chat, NUMBERS), other, WIDE)
        assert sum(a.ids != b.ids for a, b in zip(again, played, strict=True)) > len(played) / 2
