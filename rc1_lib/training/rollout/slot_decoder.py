"""One causal model of transformers over slots that stay where they are, so that a step can be recorded and replayed.

Row r's token at position p is in slot [r, p]. The growing decoder lets all rows end at one slot, so that what is
read is as narrow as it can be, and moves when it grows. Here nothing moves while rows write, so a step of decoding
reads and writes the same addresses every time, which is what a recorded graph needs.

Rows that write are in the first places, those that are set aside in the last ones. A step feeds a *bucket* of rows
and reads a bucket of slots: as many as are needed, rounded up to one of a few sizes, so that a few recordings serve
all steps. What is recorded has to find everything in tensors that stay: tokens and positions are copied into them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from rc1_lib.training.rollout.decoder import Decoder, check_sees_everything, order_after

LEAST_ROWS, LEAST_SLOTS = 8, 128
"""The smallest bucket of rows and of slots."""


Step = Callable[[], tuple[Tensor, Tensor]]
"""A step over tensors that stay: the logits and the states."""
Recorder = Callable[[Step], Step]
"""Turns a step into one that is replayed without Python between its kernels, with what its tensors hold by then."""


class CudaGraphs:
    """A CUDA graph for each bucket, all in one pool of memory, which lasts as long as a graph in it does.

    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        # torch refuses to record into a pool that has lost its graphs: this one stays when all steps are given up.
        self._first = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._first, pool=self._pool):
            torch.zeros(1, device="cuda")

    def record(self, run: Step) -> Step:
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


class SlotLayer(CacheLayerMixin):
    """Keys and values of one layer [rows, heads, slots + 1, D]; the last slot is where what does not count is put."""

    is_sliding = False

    def __init__(self, cache: SlotCache) -> None:
        """A layer of `cache`, which says where tokens are written and how far is read."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache = cache
        self.buffers: list[Tensor] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate for all rows, with the shapes of the first states that come."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.buffers = [self._zeros(states) for states in (key_states, value_states)]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write new states [B, heads, Q, D] where the cache says, and return views of what may be read."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        fed = self._cache.fed
        for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[fed.rows_B1, :, fed.positions_BQ] = states.transpose(1, 2)
        keys, values = (buffer[fed.first : fed.first + fed.rows, :, : fed.width] for buffer in self.buffers)
        return keys, values

    def widen(self) -> None:
        """Go on in buffers with as many slots as the cache has now."""
        old, self.buffers = self.buffers, [self._zeros(states) for states in self.buffers]
        for buffer, states in zip(self.buffers, old, strict=True):
            buffer[:, :, : states.shape[2] - 1] = states[:, :, :-1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Slots that are read, and the first of them."""
        return self._cache.fed.width, 0

    def get_seq_length(self) -> int:
        """Slots that are read."""
        return self._cache.fed.width

    def get_max_length(self) -> int:
        """Slots allocated."""
        return self._cache.slots

    def _zeros(self, like: Tensor) -> Tensor:
        # Zeros, since what is masked still meets a weight of 0, and 0 times what was never written may be NaN.
        return like.new_zeros((self._cache.rows, like.shape[1], self._cache.slots + 1, like.shape[3]))


class Fed:
    """Where the tokens that are fed next are written, and how far their rows read.

    Attributes:
        first, rows: the rows fed, neighbours of one another.
        width: slots that are read, from the first.
        positions_BQ: of the tokens; `slots` of the cache for what does not count.
        rows_B1: the rows' places.
    """

    def __init__(self, first: int, width: int, positions_BQ: Tensor, places_R: Tensor) -> None:
        """Tokens for the rows from `first` on, as many as there are positions."""
        self.first, self.rows, self.width = first, len(positions_BQ), width
        self.positions_BQ = positions_BQ
        self.rows_B1 = places_R[first : first + self.rows, None]


class SlotCache(Cache):
    """The layers of a model with slots for `rows` rows.

    Attributes:
        rows: rows allocated.
        slots: slots of a row; a token's is its position.
        fed: what is fed next; set before the model is called.
    """

    fed: Fed

    def __init__(self, layers: int, rows: int, device: torch.device) -> None:
        """No slots yet: `reserve` them before anything is fed."""
        self.rows, self.slots = rows, 0
        super().__init__(layers=[SlotLayer(self) for _ in range(layers)])
        self._places_R = torch.arange(rows, device=device)

    def reserve(self, slots: int) -> None:
        """Have `slots` slots or more for every row; what has been written stays, at other addresses."""
        assert slots > self.slots, f"{self.slots} slots are there, {slots} asked for"
        self.slots = slots
        for layer in self._slotted:
            if layer.is_initialized:
                layer.widen()

    def drop(self) -> None:
        """Let go of all keys and values."""
        for layer in self._slotted:
            layer.buffers = []

    def feed(self, first: int, width: int, positions_BQ: Tensor) -> Tensor:
        """Say what is fed next; the mask to feed it with: bool [B, 1, Q, width]."""
        self.fed = Fed(first, width, positions_BQ, self._places_R)
        slots_W = torch.arange(width, device=positions_BQ.device)
        return (slots_W <= positions_BQ[:, :, None])[:, None]

    def move(self, source: Sequence[int], to: Sequence[int], width: int) -> None:
        """Copy the first `width` slots of rows to others, all at once: a row may take the place of one that goes."""
        device = self._places_R.device
        chosen, places = (torch.tensor(rows, dtype=torch.long, device=device) for rows in (source, to))
        for layer in self._slotted:
            for buffer in layer.buffers:
                buffer[places, :, :width] = buffer[chosen, :, :width]

    @property
    def _slotted(self) -> list[SlotLayer]:
        return cast("list[SlotLayer]", self.layers)


class SlotDecoder(Decoder):
    """A model, slots for its rows, and the recorded steps over them."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int, recorder: Recorder | None = None) -> None:
        """Takes a causal model, and feeds it inside `running`.

        Args:
            model: all of whose layers attend to everything before.
            pad_id: fills up; what it is does not matter.
            rows: under way at most, those aside included.
            recorder: of the steps; None runs each as it is.

        Raises:
            RolloutError: when layers see a window only.
        """
        check_sees_everything(model.config)
        config = model.config.get_text_config()
        super().__init__(model, pad_id)
        self._rows, self._recorder = rows, recorder
        self._cache = SlotCache(config.num_hidden_layers, rows, self._device)
        self._live = self._aside = self._reach = 0
        self._tokens_R1, self._positions_R1 = (
            torch.zeros((rows, 1), dtype=torch.long, device=self._device) for _ in range(2)
        )
        self._recorded: dict[tuple[int, int], Step] = {}

    def close(self) -> None:
        """See `Decoder.close`.

        Recorded steps know their decoder, and layers their cache: such circles stay until Python looks for them.
        """
        super().close()
        self._recorded.clear()
        self._cache.drop()

    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """See `Decoder.step`."""
        assert len(tokens) == self._live, f"{self._live} rows are live, {len(tokens)} tokens given"
        reach = max(positions) + 1
        self._reserve(reach)
        rows, width = min(_bucket(self._live, LEAST_ROWS), self._rows), _bucket(reach, LEAST_SLOTS)
        idle = rows - self._live
        # An idle row may be one that is set aside: what is fed to it goes where nothing is read.
        self._tokens_R1[:rows, 0] = self._tensor([*tokens, *[self._pad_id] * idle])
        self._positions_R1[:rows, 0] = self._tensor([*positions, *[self._cache.slots] * idle])
        if (rows, width) not in self._recorded:

            def run() -> tuple[Tensor, Tensor]:
                tokens_R1 = self._tokens_R1[:rows]
                return self._run(tokens_R1, self._positions_R1[:rows], torch.zeros_like(tokens_R1[:, 0]), 0, width)

            self._recorded[rows, width] = self._recorder(run) if self._recorder else run
        logits_BV, states_BD = self._recorded[rows, width]()
        # A replay writes into the same tensors again; states are kept by whoever asks for them.
        self._states_BD = states_BD[: self._live].clone()
        return logits_BV[: self._live]

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """See `Decoder.admit`."""
        return self._read(prompts, [0] * len(prompts))

    def part(self, kept: list[int], aside: list[int]) -> list[int]:
        """See `Decoder.part`."""
        order = order_after(self._live, kept)
        moves = [(row, place) for place, row in enumerate(order) if row != place]
        moves += [(row, self._rows - 1 - self._aside - at) for at, row in enumerate(aside)]
        self._move(moves)
        self._live, self._aside = len(order), self._aside + len(aside)
        return order

    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """See `Decoder.resume`."""
        assert len(tokens) == self._aside, f"{self._aside} rows are aside, tokens given for {len(tokens)}"
        self._move([(self._rows - 1 - at, self._live + at) for at in range(self._aside)])
        self._aside = 0
        return self._read(tokens, positions)

    def _read(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to rows that become live, as many to each as it has."""
        lengths = [len(each) for each in tokens]
        most, reach = max(lengths), max(start + length for start, length in zip(positions, lengths, strict=True))
        self._reserve(reach)
        offsets_Q, lengths_B = torch.arange(most, device=self._device), self._tensor(lengths)
        positions_BQ = torch.where(
            offsets_Q < lengths_B[:, None], self._tensor(positions)[:, None] + offsets_Q, self._cache.slots
        )
        logits_BV, _ = self._run(self._padded(tokens), positions_BQ, lengths_B - 1, self._live, reach)
        self._live += len(tokens)
        assert self._live + self._aside <= self._rows, "more rows are under way than there is room for"
        return logits_BV

    def _run(
        self, ids_BQ: Tensor, positions_BQ: Tensor, last_B: Tensor, first: int, width: int
    ) -> tuple[Tensor, Tensor]:
        """Feed tokens to the rows from `first` on: the logits after each row's last, and the states after them."""
        mask = self._cache.feed(first, width, positions_BQ)
        logits_BV = self._forward(
            ids_BQ,
            last_B,
            # Additive, which every implementation of attention takes for what it is.
            attention_mask=torch.zeros(mask.shape, dtype=self._model.dtype, device=mask.device).masked_fill_(
                ~mask, -torch.inf
            ),
            # What does not count has a position all the same, and an embedding of positions has to have it.
            position_ids=positions_BQ.where(positions_BQ < self._cache.slots, 0),
            past_key_values=self._cache,
        )
        return logits_BV, self.states()

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


def _bucket(wanted: int, least: int) -> int:
    """The smallest of `least`, 1.5 `least`, 2 `least`, 3 `least`, 4 `least` ... that holds `wanted`."""
    size = least
    while size < wanted:
        size = size * 3 // 2 if size.bit_count() == 1 else size * 4 // 3
    return size
