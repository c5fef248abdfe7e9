"""The growing cache equals `DynamicCache` of transformers, also when rows leave and join."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from rc1_lib.training.rollout.growing_cache import LEAST_ROOM, GrowingCache, order_after


def states(rows: int, slots: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 2, slots, 4, generator=generator), torch.randn(rows, 2, slots, 4, generator=generator)


def empty(rows: int) -> GrowingCache:
    return GrowingCache(rows, torch.device("cpu"))


def cache_of(lengths: list[int], seed: int) -> tuple[GrowingCache, list[Tensor]]:
    """A cache after prompts of these lengths, and the keys of each row's tokens."""
    cache = empty(len(lengths))
    keys, values = states(len(lengths), max(lengths), seed)
    cache.update(keys, values, 0)
    cache.align([max(lengths) - length for length in lengths])
    return cache, [keys[row, :, :length] for row, length in enumerate(lengths)]


def assert_holds(cache: GrowingCache, kept: list[Tensor]) -> None:
    """Feed one more slot to every row and assert that the mask shows it and all earlier ones, and no others."""
    new = states(len(kept), 1, seed=99)
    mask = cache.mask(1)
    held, _ = cache.update(*new, 0)
    for place, keys in enumerate(kept):
        assert torch.equal(held[place][:, mask[place]], torch.cat((keys, new[0][place]), dim=1))
        assert mask[place, -1 - keys.shape[1] :].all(), "a row's slots must be the last ones"
    assert mask.any(dim=0).all(), "a slot is kept that no row sees"


def test_slots_are_kept_when_the_cache_grows() -> None:
    ours, theirs = empty(3), DynamicCache()
    for step, slots in enumerate([5] + [1] * (5 * LEAST_ROOM) + [7]):
        for layer in (0, 1):
            pair = states(3, slots, seed=2 * step + layer)
            got, expected = ours.update(*pair, layer), theirs.update(*pair, layer)
            assert torch.equal(got[0], expected[0])
            assert torch.equal(got[1], expected[1])
    assert ours.get_seq_length() == theirs.get_seq_length()
    assert ours.get_mask_sizes(3, 1) == theirs.get_mask_sizes(3, 1)


def test_right_padding_is_removed() -> None:
    cache, keys = cache_of([5, 2, 4], seed=0)
    assert cache.mask(0).tolist() == [[True] * 5, [False] * 3 + [True] * 2, [False] + [True] * 4]
    assert_holds(cache, keys)


def test_padding_shared_by_all_rows_leaves_no_slot() -> None:
    cache = empty(2)
    keys, values = states(2, 6, seed=0)
    cache.update(keys, values, 0)
    cache.align([2, 3])
    assert cache.get_seq_length() == 4
    assert_holds(cache, [keys[0, :, :4], keys[1, :, :3]])


def test_leaving_rows_free_their_places_and_unseen_slots() -> None:
    cache, keys = cache_of([4, 3, 1, 2], seed=0)
    cache.keep([1, 3])
    assert order_after(4, [1, 3]) == [3, 1]
    assert cache.get_seq_length() == 3
    assert_holds(cache, [keys[3], keys[1]])


def test_taken_rows_are_copies() -> None:
    cache, keys = cache_of([4, 3, 1, 2], seed=0)
    taken = cache.take([3, 1])
    assert taken.get_seq_length() == 3
    assert_holds(taken, [keys[3], keys[1]])
    assert_holds(cache, keys)


@pytest.mark.parametrize(("present", "joining"), [(6, 3), (3, 6), (4, 4)])
def test_joining_rows_end_at_the_same_slot(present: int, joining: int) -> None:
    cache, keys = cache_of([present, present - 2], seed=0)
    other, joined = cache_of([joining - 1, joining, joining - 2], seed=1)
    cache.join(other, 8)
    assert cache.rows == 5
    assert_holds(cache, keys + joined)


def test_parts_are_joined_in_order() -> None:
    parts = [cache_of(lengths, seed) for seed, lengths in enumerate([[2], [7, 5], [3]])]
    cache = GrowingCache.joined([part for part, _ in parts], after=1)
    assert cache.rows == 4
    assert_holds(cache, [keys for _, rows in parts for keys in rows])


def test_cache_survives_rows_that_repeatedly_leave_and_join() -> None:
    cache, kept = cache_of([4, 3, 2], seed=0)
    for step in range(8):
        aside = cache.take([0])
        put_aside = kept[0]
        order = order_after(3, [1, 2])
        cache.keep([1, 2])
        kept = [kept[place] for place in order]
        if step % 2:  # sometimes the row that left comes back
            cache.join(aside, 3)
            kept.append(put_aside)
        else:
            other, joined = cache_of([3 + 2 * step % 5], seed=10 + step)
            cache.join(other, 3)
            kept += joined
        new, values = states(3, 1, seed=50 + step)
        cache.update(new, values, 0)
        kept = [torch.cat((keys, new[place]), dim=1) for place, keys in enumerate(kept)]
    assert_holds(cache, kept)


def test_last_rows_fill_the_gaps() -> None:
    assert order_after(5, [0, 1, 2, 3, 4]) == [0, 1, 2, 3, 4]
    assert order_after(5, [2, 3, 4]) == [4, 3, 2]
    assert order_after(5, [0, 4]) == [0, 4]
    assert order_after(2, []) == []
