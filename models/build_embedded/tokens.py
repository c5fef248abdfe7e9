"""Tokenized demonstrations in flat arrays, and batches of rows of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.build_embedded.corpus import Demonstration
from rc1_lib.training.chat_format import ChatFormat

_SORTED_TOGETHER = 2048


@dataclass(frozen=True, slots=True)
class Packed:
    """Tokenized rows.

    Attributes:
        ids: all tokens, row after row [N] int32.
        own: action mask: True for tokens of the assistant [N].
        exact: True for tokens of the assistant with only one correct value: arguments of calls, and answers [N].
        choice: True for tokens that choose what a turn does: its first one, and the one that names a tool [N].
        starts: first token of each row, and the end of the last one [R + 1].
    """

    ids: np.ndarray[Any, np.dtype[np.int32]]
    own: np.ndarray[Any, np.dtype[np.bool_]]
    exact: np.ndarray[Any, np.dtype[np.bool_]]
    choice: np.ndarray[Any, np.dtype[np.bool_]]
    starts: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of tokens of each row [R]."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded on the right [B, T]: token ids, and masks of own, exact, choosing and real tokens."""

    ids: Tensor
    own: Tensor
    exact: Tensor
    choice: Tensor
    real: Tensor


def pack(rows: Sequence[Demonstration], form: ChatFormat, most: int, made_up: bool) -> Packed:
    """Tokenize the rows, and drop those with more than `most` tokens.

    Without `made_up`, arguments and answers of rows with made-up information are not learned: they teach only guessing.
    """
    kept = []
    marks = _Marks(form)
    for number, row in enumerate(rows, start=1):
        tokens, mine = form.dialogue_ids(row["messages"])
        if len(tokens) <= most:
            choice, exact = marks.choices(tokens, mine), marks.exact(tokens, mine)
            if not made_up and row["made_up"]:
                mine = [its and not one_right for its, one_right in zip(mine, exact, strict=True)]
                exact = [False] * len(tokens)
            kept.append((np.array(tokens, np.int32), *(np.array(mask, np.bool_) for mask in (mine, exact, choice))))
        if number % 2000 == 0 or number == len(rows):
            print(f"tokens: {number} of {len(rows)} dialogues", flush=True)
    ids, own, exact_N, choice_N = (np.concatenate(column) for column in zip(*kept, strict=True))
    return Packed(ids, own, exact_N, choice_N, np.cumsum([0, *(len(row[0]) for row in kept)]))


class _Marks:
    """Finds the assistant's tokens with only one correct value, and those that choose what a turn does."""

    def __init__(self, form: ChatFormat) -> None:
        self._form = form
        self._opens: dict[int, bool] = {}
        self._closes: dict[int, bool] = {}

    def choices(self, ids: Sequence[int], own: Sequence[bool]) -> list[bool]:
        """Flag the first token of each turn, and those that name a tool: they choose to ask, to call or to answer."""
        before = [False, *own[:-1]]
        return [
            mine and (not already or self._begins(token)) for token, mine, already in zip(ids, own, before, strict=True)
        ]

    def exact(self, ids: Sequence[int], own: Sequence[bool]) -> list[bool]:
        """Flag the tokens with only one correct value: arguments of calls, and answers."""
        inside, flags, before = False, [], -1
        for token, mine in zip(ids, own, strict=True):
            inside = inside and mine and not self._ends(token)
            flags.append(inside)
            if mine and (self._begins(token) or (self._form.decode([token]) == ":" and self._is_answer(before))):
                inside = True
            before = token
        return flags

    def _begins(self, token: int) -> bool:
        if token not in self._opens:
            self._opens[token] = self._form.decode([token]).endswith('": "')
        return self._opens[token]

    def _ends(self, token: int) -> bool:
        if token not in self._closes:
            self._closes[token] = token == self._form.end_id or '"' in self._form.decode([token])
        return self._closes[token]

    def _is_answer(self, token: int) -> bool:
        return token >= 0 and self._form.decode([token]).strip() == "Answer"


def padded(packed: Packed, rows: Sequence[int], pad_id: int) -> Batch:
    """Pad the rows to one batch."""
    lengths = packed.lengths[list(rows)]
    ids = np.full((len(rows), int(lengths.max())), pad_id, np.int64)
    own, exact, choice = (np.zeros(ids.shape, np.bool_) for _ in range(3))
    real = np.arange(ids.shape[1])[None, :] < lengths[:, None]
    places = np.concatenate([np.arange(packed.starts[row], packed.starts[row + 1]) for row in rows])
    ids[real], own[real] = packed.ids[places], packed.own[places]
    exact[real], choice[real] = packed.exact[places], packed.choice[places]
    return Batch(*(torch.from_numpy(array) for array in (ids, own, exact, choice, real)))


def batches(packed: Packed, tokens: int, longest: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Pass once over the rows of at most `longest` tokens, in random order, in batches of about `tokens` tokens.

    Rows of similar length are in the same batch, so that there is little padding.
    """
    order = rng.permutation(np.flatnonzero(packed.lengths <= longest))
    found: list[list[int]] = []
    for first in range(0, len(order), _SORTED_TOGETHER):
        chunk = order[first : first + _SORTED_TOGETHER]
        chunk = chunk[np.argsort(packed.lengths[chunk], kind="stable")]
        batch: list[int] = []
        for row in chunk.tolist():
            if batch and (len(batch) + 1) * int(packed.lengths[row]) > tokens:
                found.append(batch)
                batch = []
            batch.append(row)
        found.append(batch)
    for number in rng.permutation(len(found)).tolist():
        yield found[number]
