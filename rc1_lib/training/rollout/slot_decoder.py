"""Decoder whose KV cache slots never move, so that a decoding step can be recorded as a CUDA graph and replayed.

Row r's token at position p is in slot [r, p]. In the growing decoder all rows end at the same slot, which reads as
little as possible but moves when it grows. Here a step always reads and writes the same addresses, as a recorded graph
needs.

Live rows are at the first places, paused rows at the last ones. A step processes a *bucket* of rows and of slots: as
many as are needed, rounded up to one of a few sizes, so that a few recordings serve all steps. Recorded steps use fixed
tensors, into which tokens and positions are copied.
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
"""Sizes of the smallest buckets of rows and slots."""


Step = Callable[[], tuple[Tensor, Tensor]]
"""A step over fixed tensors; returns logits and states."""
Recorder = Callable[[Step], Step]
"""Turns a step into one that replays the same kernels without Python, on the current contents of its tensors."""


class CudaGraphs:
    """A CUDA graph for each bucket. All share one memory pool, which lives as long as any of its graphs.

    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        # torch refuses to record into a pool without graphs, so this one stays when all recorded steps are dropped.
        self._first = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._first, pool=self._pool):
            torch.zeros(1, device="cuda")

    def record(self, run: Step) -> Step:
        """Run a step twice, so that libraries allocate what they need, and then record it."""
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
    """Keys and values of one layer [rows, heads, slots + 1, D]. Padding is written to the last slot."""

    is_sliding = False

    def __init__(self, cache: SlotCache) -> None:
        """Create a layer of `cache`, which decides where tokens are written and how far rows read."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache = cache
        self.buffers: list[Tensor] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate buffers for all rows, with the shapes of the first states."""
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
        """Move to buffers with the cache's current number of slots."""
        old, self.buffers = self.buffers, [self._zeros(states) for states in self.buffers]
        for buffer, states in zip(self.buffers, old, strict=True):
            buffer[:, :, : states.shape[2] - 1] = states[:, :, :-1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of slots that are read, and the first of them."""
        return self._cache.fed.width, 0

    def get_seq_length(self) -> int:
        """Return the number of slots that are read."""
        return self._cache.fed.width

    def get_max_length(self) -> int:
        """Return the number of slots allocated."""
        return self._cache.slots

    def _zeros(self, like: Tensor) -> Tensor:
        # Zeros: masked slots have weight 0, but 0 times uninitialised memory may be NaN.
        return like.new_zeros((self._cache.rows, like.shape[1], self._cache.slots + 1, like.shape[3]))


class Fed:
    """Where the next tokens are written, and how far their rows read.

    Attributes:
        first, rows: the contiguous rows to feed.
        width: number of slots to read, from the first.
        positions_BQ: positions of the tokens; `slots` of the cache for padding.
        rows_B1: indices of the rows.
    """

    def __init__(self, first: int, width: int, positions_BQ: Tensor, places_R: Tensor) -> None:
        """Describe tokens for the rows from `first` on, one row per row of `positions_BQ`."""
        self.first, self.rows, self.width = first, len(positions_BQ), width
        self.positions_BQ = positions_BQ
        self.rows_B1 = places_R[first : first + self.rows, None]


class SlotCache(Cache):
    """The layers of a model, with slots for `rows` rows.

    Attributes:
        rows: rows allocated.
        slots: slots per row; a token's slot is its position.
        fed: where the next tokens go; set before the model is called.
    """

    fed: Fed

    def __init__(self, layers: int, rows: int, device: torch.device) -> None:
        """Create a cache without slots; call `reserve` before feeding anything."""
        self.rows, self.slots = rows, 0
        super().__init__(layers=[SlotLayer(self) for _ in range(layers)])
        self._places_R = torch.arange(rows, device=device)

    def reserve(self, slots: int) -> None:
        """Allocate `slots` slots for every row. Existing contents are kept, at new addresses."""
        assert slots > self.slots, f"cannot reserve {slots} slots, {self.slots} are allocated"
        self.slots = slots
        for layer in self._slotted:
            if layer.is_initialized:
                layer.widen()

    def drop(self) -> None:
        """Free all keys and values."""
        for layer in self._slotted:
            layer.buffers = []

    def feed(self, first: int, width: int, positions_BQ: Tensor) -> Tensor:
        """Set where the next tokens go, and return their attention mask: bool [B, 1, Q, width]."""
        self.fed = Fed(first, width, positions_BQ, self._places_R)
        slots_W = torch.arange(width, device=positions_BQ.device)
        return (slots_W <= positions_BQ[:, :, None])[:, None]

    def move(self, source: Sequence[int], to: Sequence[int], width: int) -> None:
        """Copy the first `width` slots of rows to others, all at once, so that a row may replace one that leaves."""
        device = self._places_R.device
        chosen, places = (torch.tensor(rows, dtype=torch.long, device=device) for rows in (source, to))
        for layer in self._slotted:
            for buffer in layer.buffers:
                buffer[places, :, :width] = buffer[chosen, :, :width]

    @property
    def _slotted(self) -> list[SlotLayer]:
        return cast("list[SlotLayer]", self.layers)


class SlotDecoder(Decoder):
    """Decoder with fixed slots for its rows, and recorded steps over them."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int, recorder: Recorder | None = None) -> None:
        """Keep a causal model, which must be called inside `running`.

        Args:
            model: with full attention in all layers.
            pad_id: any valid token id, used for padding.
            rows: maximum number of live and paused rows.
            recorder: records steps; None runs each step directly.

        Raises:
            RolloutError: if the model has sliding-window attention.
        """
        check_sees_everything(model.config)
        config = model.config.get_text_config()
        super().__init__(model, pad_id)
        self._rows, self._recorder = rows, recorder
        self._cache = SlotCache(config.num_hidden_layers, rows, self._device)
        self._live = self._paused = self._reach = 0
        self._tokens_R1, self._positions_R1 = (
            torch.zeros((rows, 1), dtype=torch.long, device=self._device) for _ in range(2)
        )
        self._recorded: dict[tuple[int, int], Step] = {}

    def close(self) -> None:
        """See `Decoder.close`.

        Recorded steps refer to their decoder, and layers to their cache. Without this, only the garbage collector would
        free them.
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
        # An idle row may be a paused one, so the padding fed to it is written to the slot that is never read.
        self._tokens_R1[:rows, 0] = self._tensor([*tokens, *[self._pad_id] * idle])
        self._positions_R1[:rows, 0] = self._tensor([*positions, *[self._cache.slots] * idle])
        if (rows, width) not in self._recorded:

            def run() -> tuple[Tensor, Tensor]:
                tokens_R1 = self._tokens_R1[:rows]
                return self._run(tokens_R1, self._positions_R1[:rows], torch.zeros_like(tokens_R1[:, 0]), 0, width)

            self._recorded[rows, width] = self._recorder(run) if self._recorder else run
        logits_BV, states_BD = self._recorded[rows, width]()
        # The next replay overwrites the same tensors.
        self._states_BD = states_BD[: self._live].clone()
        return logits_BV[: self._live]

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """See `Decoder.admit`."""
        return self._read(prompts, [0] * len(prompts))

    def regroup(self, kept: list[int], paused: list[int]) -> list[int]:
        """See `Decoder.regroup`."""
        order = order_after(self._live, kept)
        moves = [(row, place) for place, row in enumerate(order) if row != place]
        moves += [(row, self._rows - 1 - self._paused - at) for at, row in enumerate(paused)]
        self._move(moves)
        self._live, self._paused = len(order), self._paused + len(paused)
        return order

    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """See `Decoder.resume`."""
        assert len(tokens) == self._paused, f"{self._paused} rows are paused, tokens given for {len(tokens)}"
        self._move([(self._rows - 1 - at, self._live + at) for at in range(self._paused)])
        self._paused = 0
        return self._read(tokens, positions)

    def _read(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to rows that become live. Rows may have different numbers of tokens."""
        lengths = [len(each) for each in tokens]
        most, reach = max(lengths), max(start + length for start, length in zip(positions, lengths, strict=True))
        self._reserve(reach)
        offsets_Q, lengths_B = torch.arange(most, device=self._device), self._tensor(lengths)
        positions_BQ = torch.where(
            offsets_Q < lengths_B[:, None], self._tensor(positions)[:, None] + offsets_Q, self._cache.slots
        )
        logits_BV, _ = self._run(self._padded(tokens), positions_BQ, lengths_B - 1, self._live, reach)
        self._live += len(tokens)
        assert self._live + self._paused <= self._rows, "more rows than there is room for"
        return logits_BV

    def _run(
        self, ids_BQ: Tensor, positions_BQ: Tensor, last_B: Tensor, first: int, width: int
    ) -> tuple[Tensor, Tensor]:
        """Feed tokens to the rows from `first` on; return the logits after each row's last token, and their states."""
        mask = self._cache.feed(first, width, positions_BQ)
        logits_BV = self._forward(
            ids_BQ,
            last_B,
            # An additive mask, which every implementation of attention interprets in the same way.
            attention_mask=torch.zeros(mask.shape, dtype=self._model.dtype, device=mask.device).masked_fill_(
                ~mask, -torch.inf
            ),
            # Padding needs a valid position too, for models with position embeddings.
            position_ids=positions_BQ.where(positions_BQ < self._cache.slots, 0),
            past_key_values=self._cache,
        )
        return logits_BV, self.states()

    def _reserve(self, reach: int) -> None:
        self._reach = max(self._reach, reach)
        if self._reach > self._cache.slots:
            self._cache.reserve(_bucket(self._reach, LEAST_SLOTS))
            # Recorded steps use the old addresses.
            self._recorded.clear()

    def _move(self, moves: Sequence[tuple[int, int]]) -> None:
        if moves:
            source, to = zip(*moves, strict=True)
            self._cache.move(source, to, self._reach)


def _bucket(wanted: int, least: int) -> int:
    """Return the smallest of `least`, 1.5 `least`, 2 `least`, 3 `least`, 4 `least` ... that holds `wanted`."""
    size = least
    while size < wanted:
        size = size * 3 // 2 if size.bit_count() == 1 else size * 4 // 3
    return size
