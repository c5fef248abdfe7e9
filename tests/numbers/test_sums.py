"""Columns are added in their order, with any number of polars threads."""

from __future__ import annotations

import numpy as np
import polars as pl

from rc1_lib.numbers.sums import sum_in_order


def test_columns_are_added_in_their_order_to_the_last_bit() -> None:
    numbers = np.random.default_rng(7).random((11, 960))
    frame = pl.DataFrame({str(place): column for place, column in enumerate(numbers)})
    in_order = np.zeros(960)
    for column in numbers:
        in_order = in_order + column
    assert frame.select(sum_in_order(frame.columns)).to_series().to_list() == in_order.tolist()
    assert frame.select(pl.sum_horizontal(frame.columns)).to_series().to_list() != in_order.tolist()


def test_a_null_in_one_column_makes_the_sum_null() -> None:
    frame = pl.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]})
    assert frame.select(sum_in_order(["a", "b"])).to_series().to_list() == [3.0, None]
