"""Rows cut into optimizer steps and, within these, into forward passes that fit a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch


def minibatch_rows(rows: int, minibatches: int, generator: torch.Generator) -> list[list[int]]:
    """The rows 0..rows-1 shuffled and cut into `minibatches` parts whose sizes differ by at most 1.

    Args:
        rows: at least `minibatches`.
        minibatches: at least 1.
        generator: on the CPU; moved on by one permutation.
    """
    assert rows >= minibatches, f"{rows} rows cannot fill {minibatches} minibatches"
    order = torch.randperm(rows, generator=generator)
    return [part.tolist() for part in order.tensor_split(minibatches)]


def micro_batches(rows: Sequence[int], lengths: Sequence[int], micro_tokens: int) -> Iterator[list[int]]:
    """The rows in parts of similar length, each within the budget once padded to its longest.

    Args:
        rows: indices into `lengths`.
        lengths: tokens of every row of the batch.
        micro_tokens: budget of a part, padding included; a row that is longer makes a part of its own.

    Yields:
        Row indices, shortest rows first.
    """
    part: list[int] = []
    for row in sorted(rows, key=lambda row: (lengths[row], row)):
        if part and (len(part) + 1) * lengths[row] > micro_tokens:
            yield part
            part = []
        part.append(row)
    if part:
        yield part
