"""Rows of unequal length as one rectangle of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rc1_lib.training.readers.encode import EncodedRow

IGNORED = -100
"""The label of a token that is not learned, as transformers has it."""


class Collator:
    """Pads rows to the longest of them."""

    def __init__(self, pad_id: int, padding_side: Literal["left", "right"]) -> None:
        """Pad with the token `pad_id` on that side."""
        self.pad_id, self.padding_side = pad_id, padding_side

    def __call__(self, rows: Sequence[EncodedRow]) -> dict[str, Any]:
        """A batch of B rows, the longest of T tokens.

        Returns:
            `input_ids` and `attention_mask` (int64 [B, T]), `labels` (int64 [B, T], `IGNORED` on prompts and padding),
            and `meta`, a list of B mappings.
        """
        width = max(len(row.ids) for row in rows)
        ids = [self._pad(row.ids, width, self.pad_id) for row in rows]
        labels = [
            self._pad((IGNORED,) * row.prompt_tokens + row.ids[row.prompt_tokens :], width, IGNORED) for row in rows
        ]
        mask = [self._pad((1,) * len(row.ids), width, 0) for row in rows]
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor(labels),
            "meta": [row.meta for row in rows],
        }

    def _pad(self, values: Sequence[int], width: int, filler: int) -> list[int]:
        padding = [filler] * (width - len(values))
        return [*values, *padding] if self.padding_side == "right" else [*padding, *values]


def micro_batches(batch: dict[str, Any], rows: int) -> list[dict[str, Tensor]]:
    """The tensors of `batch` in parts of at most `rows` rows, each without columns that are padding in all its rows."""
    tensors = {name: part for name, part in batch.items() if isinstance(part, Tensor)}
    parts = []
    for start in range(0, len(batch["input_ids"]), rows):
        part = {name: tensor[start : start + rows] for name, tensor in tensors.items()}
        used = part["attention_mask"].any(dim=0).nonzero().flatten()
        keep = slice(int(used[0]), int(used[-1]) + 1)
        parts.append({name: tensor[:, keep] for name, tensor in part.items()})
    return parts
