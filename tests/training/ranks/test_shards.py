"""Splitting a step's rows into shards, and gathering the results."""

from __future__ import annotations

import random

import pytest

from rc1_lib.training.ranks.shards import Shards


class NoOthers:
    """A link without answers of other processes."""

    rank, size = 1, 2

    def all_gather(self, mine: dict[int, str]) -> dict[int, str]:
        return mine


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_row_is_in_one_shard_and_shards_are_balanced(count: int) -> None:
    lengths = [random.Random(4).randint(20, 400) for _ in range(200)]
    rows = random.Random(5).sample(range(200), 128)
    parts = Shards(count).split(rows, lengths)
    assert sorted(row for part in parts for row in part) == sorted(rows)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    loads = [sum(lengths[row] for row in part) for part in parts]
    assert max(loads) - min(loads) <= max(lengths)


def test_single_process_has_every_shard() -> None:
    assert Shards(3).mine == [0, 1, 2]
    assert Shards(3).all_gather({2: "c", 0: "a", 1: "b"}) == ["a", "b", "c"]


def test_result_of_another_processs_shard_is_rejected() -> None:
    with pytest.raises(AssertionError, match=r"\[0\], expected \[1\]"):
        Shards(2, NoOthers()).all_gather({0: "a"})
