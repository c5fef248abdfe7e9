"""Collating episodes into a batch, and splitting rows into minibatches and micro-batches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from rc1_lib.training.updates.batch import collate, micro_batches, minibatch_rows
from rc1_lib.training.updates.forward import action_tokens
from tests.training.ppo.toys import episode, random_episodes

LONG = episode("b", [(False, [1, 2]), (True, [3]), (False, [4, 5]), (True, [6, 7])], [-0.1, -0.2, -0.3])
SHORT = episode("a", [(False, [1]), (True, [2]), (False, [3, 4, 5, 6, 7, 8])], [-0.4])


def test_rows_are_sorted_right_padded_and_cut_after_their_last_own_token() -> None:
    batch = collate([LONG, SHORT], [1.0, 0.5], pad_id=9)
    assert batch.ids.tolist() == [[1, 2, 9, 9, 9, 9, 9], [1, 2, 3, 4, 5, 6, 7]]
    assert batch.lengths.tolist() == [2, 7]
    assert batch.scores.tolist() == [0.5, 1.0]
    assert batch.action_mask.nonzero().tolist() == [[0, 1], [1, 2], [1, 5], [1, 6]]
    torch.testing.assert_close(batch.old_logprobs[batch.action_mask], torch.tensor([-0.4, -0.1, -0.2, -0.3]))
    assert not bool(batch.old_logprobs.isnan().any())
    assert len(batch) == 2 and batch.action_count == 4


def test_order_of_episodes_does_not_change_the_batch() -> None:
    episodes, scores = random_episodes(6)
    one, other = collate(episodes, scores, 0), collate(episodes[::-1], scores[::-1], 0)
    for name in ("ids", "action_mask", "lengths", "old_logprobs", "scores"):
        assert torch.equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_own_token_without_a_finite_log_probability_is_rejected(wrong: float) -> None:
    broken = replace(LONG, logprobs=(math.nan, math.nan, wrong, math.nan, math.nan, -0.2, -0.3))
    with pytest.raises(ValueError, match=rf"^token 2 .*'b'.* {wrong}, "):
        collate([SHORT, broken], [0.0, 0.0], pad_id=0)


def test_nan_score_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"'a'.* nan, "):
        collate([LONG, SHORT], [0.0, math.nan], pad_id=0)


def test_part_is_trimmed_and_has_the_state_before_each_own_token() -> None:
    batch = collate([LONG, SHORT], [1.0, 0.5], pad_id=9)
    part = action_tokens(batch, [1, 0])
    assert part.inputs.tolist() == [[1, 2, 3, 4, 5, 6], [1, 2, 9, 9, 9, 9]]
    assert part.of(batch.ids).tolist() == [3, 6, 7, 2]
    assert part.inputs.flatten()[part.states].tolist() == [2, 5, 6, 1]
    assert action_tokens(batch, [0]).inputs.tolist() == [[1]]


def test_micro_batches_have_rows_of_similar_length_within_the_budget() -> None:
    assert list(micro_batches([0, 1, 2, 3, 4], [5, 30, 4, 9, 5], 12)) == [[2, 0], [4], [3], [1]]
    assert list(micro_batches([0, 2, 4], [5, 30, 4, 9, 5], 15)) == [[2, 0, 4]]


def test_minibatches_have_every_row_once_and_balanced_sizes() -> None:
    generator = torch.Generator().manual_seed(1)
    first, second = (minibatch_rows(11, 4, generator) for _ in range(2))
    assert [len(rows) for rows in first] == [3, 3, 3, 2]
    assert sorted(row for rows in first for row in rows) == list(range(11))
    assert first != second
