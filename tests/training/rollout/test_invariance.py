"""A row's samples do not depend on other rows, their order, the batch size or padding."""

from __future__ import annotations

import gc
import weakref

import pytest
from torch import Tensor
from transformers import PreTrainedModel

from rc1_lib.training.rollout import growing_cache
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


def test_dialogues_differ_from_one_another(played: list[Trajectory]) -> None:
    assert len({trajectory.ids for trajectory in played}) > 10
    assert len({trajectory.outcome.turns for trajectory in played}) > 1


def test_results_have_the_order_of_the_starts(played: list[Trajectory]) -> None:
    assert [trajectory.row_id for trajectory in played] == [f"row-{number}" for number in NUMBERS]


def test_row_order_changes_no_token(chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory]) -> None:
    reversed_rows = roll_out(memorized, chat, starts(chat, NUMBERS)[::-1], sampling(), WIDE)
    assert same(reversed_rows[::-1], played)


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


def test_other_rows_change_no_token_of_a_row(
    chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory]
) -> None:
    alone = roll_out(memorized, chat, starts(chat, NUMBERS)[6:7], sampling(), WIDE)
    assert same(alone, played[6:7])


def test_seed_and_iteration_decide_the_episodes(
    chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory]
) -> None:
    assert same(roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), WIDE), played, within=0.0)
    for other in (sampling(seed=4), sampling(iteration=2)):
        again = roll_out(memorized, chat, starts(chat, NUMBERS), other, WIDE)
        assert sum(a.ids != b.ids for a, b in zip(again, played, strict=True)) > len(played) / 2


def test_episodes_of_one_row_use_different_random_numbers(played: list[Trajectory]) -> None:
    of_row_0 = [trajectory for trajectory in played if trajectory.row_id == "row-0"]
    assert len({trajectory.ids for trajectory in of_row_0}) > 1


def test_keys_and_values_are_freed_when_a_rollout_ends(
    chat: StandInChat, memorized: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They must not wait for the garbage collector: they are gigabytes, and training needs the memory."""
    buffers = list[weakref.ref[Tensor]]()
    zeros = growing_cache._zeros

    def kept(like: Tensor, rows: int, slots: int) -> Tensor:
        made = zeros(like, rows, slots)
        buffers.append(weakref.ref(made))
        return made

    monkeypatch.setattr(growing_cache, "_zeros", kept)
    gc.collect()
    gc.disable()
    try:
        roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), WIDE)
        assert buffers and all(one() is None for one in buffers)
    finally:
        gc.enable()
