"""What a rollout asks of a model: rows that come, write, read and go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel


class Decoder(ABC):
    """A model, the cache of the rows that write, and those of rows that are set aside."""

    def __init__(self, model: PreTrainedModel, pad_id: int) -> None:
        """Takes a causal model in evaluation mode, see `decoding`, and the token that fills up, whatever it is."""
        self._model, self._pad_id, self._device = model, pad_id, model.device
        self._last: tuple[Tensor, Tensor] | None = None
        self._states_BD: Tensor | None = None

    @abstractmethod
    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Feed one token to every live row and return the logits after it: [B, V], good until the next call."""

    @abstractmethod
    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read prompts as new rows after the live ones and return the logits after each: [B, V]."""

    @abstractmethod
    def part(self, kept: list[int], aside: list[int]) -> list[int]:
        """Go on with the live rows `kept`, set those in `aside` aside in this order, and drop all others.

        Returns:
            Which of the old live rows stands in each place now.
        """

    @abstractmethod
    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to all rows aside, which become live after the others, and return the logits: [B, V].

        Args:
            tokens: of each row, in the order in which they were set aside; not all of one length.
            positions: of the first of them.
        """

    def close(self) -> None:
        """Let go of the keys and values, and of the states; the decoder is of no more use."""
        self._last = self._states_BD = None

    def last_only(self, head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave only each row's last position to the vocabulary projection, the dearest of all layers."""
        assert self._last is not None, "the model is only run by this decoder while the hook is on"
        hidden_BTD: Tensor = inputs[0]
        self._states_BD = hidden_BTD[self._last]
        return (self._states_BD[:, None], *inputs[1:])

    def states(self) -> Tensor:
        """The hidden states that the last logits were made of: [B, D]."""
        assert self._states_BD is not None, "nothing was fed yet"
        return self._states_BD

    def _forward(self, ids_BT: Tensor, last_B: Tensor, **more: Any) -> Tensor:
        """The logits [B, V] after each row's last token, which stands at `last_B`."""
        self._last = (torch.arange(len(ids_BT), device=self._device), last_B)
        logits: Tensor = self._model(input_ids=ids_BT, use_cache=True, **more).logits
        return logits[:, 0]

    def _padded(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Token ids [B, T], filled up after each row's."""
        width = max(map(len, tokens))
        return self._tensor([[*each, *[self._pad_id] * (width - len(each))] for each in tokens])

    def _tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


def order_after(rows: int, kept: list[int]) -> list[int]:
    """Which row stands in each place once only `kept` of `rows` rows are left and the last ones fill the gaps."""
    assert kept == sorted(set(kept)), "rows are kept in order, each once"
    assert not kept or 0 <= kept[0] <= kept[-1] < rows, "a row that is kept is one of the rows"
    stay = set(kept)
    fill = [row for row in kept if row >= len(kept)]
    return [place if place in stay else fill.pop() for place in range(len(kept))]
