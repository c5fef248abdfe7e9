"""The growing cache equals `DynamicCache` of transformers, also when rows leave and join."""

from __future__ import annotations

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
