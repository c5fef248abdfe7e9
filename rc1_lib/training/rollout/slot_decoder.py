"""One causal model of transformers over slots that stay where they are, so that a step can be recorded and replayed.

Rows that write stand in the first places, those that are set aside in the last ones. A step feeds a *bucket* of rows
and reads a bucket of slots: as many as are needed, rounded up to one of a few sizes, so that a few recordings serve
all steps. What is recorded has to find everything in tensors that stay: tokens and positions are copied into them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from rc1_lib.training.rollout.errors import RolloutError
from rc1_lib.training.rollout.growing_cache import order_after
from rc1_lib.training.rollout.slot_cache import SlotCache

LEAST_ROWS, LEAST_SLOTS = 8, 128
"""The smallest bucket of rows and of slots."""


class Recorder(Protocol):
    """Turns a computation over tensors that stay into one that is replayed without Python between its kernels."""

    def record(self, run: Callable[[], tuple[Tensor, Tensor]]) -> Callable[[], tuple[Tensor, Tensor]]:
        """What does as `run` does whenever it is called, with whatever stands in its tensors by then."""
        ...


class CudaGraphs:
    """A CUDA graph for each bucket, all in one pool of memory.

    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, run: Callable[[], tuple[Tensor, Tensor]]) -> Callable[[], tuple[Tensor, Tensor]]:
        """Run it twice, which lets libraries allocate what they keep, and once more to record it."""
        beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(2):
                run()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            found = run()

        def replay() -> tuple[Tensor, Tensor]:
            graph.replay()
            return found

        return replay


class SlotDecoder:
    """A model, slots for its rows, and the recorded steps over them."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int, recorder: Recorder | None = None) -> None:
        """Takes a causal model in evaluation mode, see `decoding`.

        Args:
            model: all of whose layers attend to everything before.
            pad_id: fills up; what it is does not matter.
            rows: under way at most, those aside included.
            recorder: of the steps; None runs each as it is.

        Raises:
            RolloutError: when layers see a window only.
        """
        _check_sees_everything(model)
        config = model.config.get_text_config()
        self._model, self._pad_id, self._rows, self._recorder = model, pad_id, rows, recorder
        self._device = model.device
        self._cache = SlotCache(config.num_hidden_layers, rows, self._device)
        self._live = self._aside = self._reach = 0
        self._tokens_R1, self._positions_R1 = (
            torch.zeros((rows, 1), dtype=torch.long, device=self._device) for _ in range(2)
        )
        self._recorded: dict[tuple[int, int], Callable[[], tuple[Tensor, Tensor]]] = {}
        self._last: tuple[Tensor, Tensor] | None = None
        self._states_BD: Tensor | None = None

    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Feed one token to every live row and return the logits after it: [B, V], good until the next call."""
        assert len(tokens) == self._live, f"{self._live} rows are live, {len(tokens)} tokens given"
        self._reserve(max(positions) + 1)
        rows, width = min(_bucket(self._live, LEAST_ROWS), self._rows), _bucket(max(positions) + 1, LEAST_SLOTS)
        idle = rows - self._live
        # An idle row may be one that is set aside: what is fed to it goes where nothing is read.
        self._tokens_R1[:rows, 0] = self._tensor([*tokens, *[self._pad_id] * idle])
        self._positions_R1[:rows, 0] = self._tensor([*positions, *[self._cache.slots] * idle])
        if (rows, width) not in self._recorded:

            def run() -> tuple[Tensor, Tensor]:
                return self._run(self._tokens_R1[:rows], self._positions_R1[:rows], 0, width)

            self._recorded[rows, width] = self._recorder.record(run) if self._recorder else run
        logits_BV, states_BD = self._recorded[rows, width]()
        # A replay writes into the same tensors again; states are kept by whoever asks for them.
        self._states_BD = states_BD[: self._live].clone()
        return logits_BV[: self._live]

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read prompts as new rows behind the live ones and return the logits after each: [B, V]."""
        return self._read(prompts, [0] * len(prompts))

    def part(self, kept: list[int], aside: list[int]) -> list[int]:
        """Go on with the live rows `kept`, set those in `aside` aside in this order, and drop all others.

        Returns:
            Which of the old live rows stands in each place now.
        """
        order = order_after(self._live, kept)
        moves = [(row, place) for place, row in enumerate(order) if row != place]
        moves += [(row, self._rows - 1 - self._aside - at) for at, row in enumerate(aside)]
        self._move(moves)
        self._live, self._aside = len(order), self._aside + len(aside)
        return order

    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to all rows aside, which become live behind the others, and return the logits: [B, V].

        Args:
            tokens: of each row, in the order in which they were set aside; not all of one length.
            positions: of the first of them.
        """
        assert len(tokens) == self._aside, f"{self._aside} rows are aside, tokens given for {len(tokens)}"
        self._move([(self._rows - 1 - at, self._live + at) for at in range(self._aside)])
        self._aside = 0
        return self._read(tokens, positions)

    def last_only(self, head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave only each row's last position to the vocabulary projection, the dearest of all layers."""
        hidden_BTD: Tensor = inputs[0]
        self._states_BD = hidden_BTD[:, -1] if self._last is None else hidden_BTD[self._last]
        return (self._states_BD[:, None], *inputs[1:])

    def states(self) -> Tensor:
        """The hidden states that the last logits were made of: [B, D]."""
        assert self._states_BD is not None, "nothing was fed yet"
        return self._states_BD

    def _read(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to rows that become live, as many to each as it has."""
        lengths = [len(each) for each in tokens]
        most, reach = max(lengths), max(start + length for start, length in zip(positions, lengths, strict=True))
        self._reserve(reach)
        ids_BQ = self._tensor([[*each, *[self._pad_id] * (most - len(each))] for each in tokens])
        offsets_Q, lengths_B1 = torch.arange(most, device=self._device), self._tensor(lengths)[:, None]
        positions_BQ = torch.where(
            offsets_Q < lengths_B1, self._tensor(positions)[:, None] + offsets_Q, self._cache.slots
        )
        self._last = (torch.arange(len(tokens), device=self._device), lengths_B1[:, 0] - 1)
        logits_BV, self._states_BD = self._run(ids_BQ, positions_BQ, self._live, reach)
        self._last = None
        self._live += len(tokens)
        assert self._live + self._aside <= self._rows, "more rows are under way than there is room for"
        return logits_BV

    def _run(self, ids_BQ: Tensor, positions_BQ: Tensor, first: int, width: int) -> tuple[Tensor, Tensor]:
        mask = self._cache.feed(first, width, positions_BQ)
        # Additive, which every implementation of attention takes for what it is.
        added = torch.zeros(mask.shape, dtype=self._model.dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
        logits: Tensor = self._model(
            input_ids=ids_BQ,
            attention_mask=added,
            # What does not count has a position all the same, and an embedding of positions has to have it.
            position_ids=positions_BQ.where(positions_BQ < self._cache.slots, 0),
            past_key_values=self._cache,
            use_cache=True,
        ).logits
        assert self._states_BD is not None, "the hook of the vocabulary projection is on"
        return logits[:, 0], self._states_BD

    def _reserve(self, reach: int) -> None:
        self._reach = max(self._reach, reach)
        if self._reach > self._cache.slots:
            self._cache.reserve(_bucket(self._reach, LEAST_SLOTS))
            # They read and write addresses that are given up.
            self._recorded.clear()

    def _move(self, moves: Sequence[tuple[int, int]]) -> None:
        if moves:
            source, to = zip(*moves, strict=True)
            self._cache.move(source, to, self._reach)

    def _tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


def _bucket(wanted: int, least: int) -> int:
    """The smallest of `least`, 1.5 `least`, 2 `least`, 3 `least`, 4 `least` ... that holds `wanted`."""
    size = least
    while size < wanted:
        size = size * 3 // 2 if size.bit_count() == 1 else size * 4 // 3
    return size


def _check_sees_everything(model: PreTrainedModel) -> None:
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if window is not None or kinds - {"full_attention"}:
        raise RolloutError(
            f"training.rollout.decoder: the model's configuration ('{config.model_type}') has layers that see a window "
            f"of {window} tokens, expected layers that see all tokens before; set it to growing"
        )
