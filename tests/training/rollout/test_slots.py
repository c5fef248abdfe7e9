"""The slot decoder, and steps recorded over its slots, sample the same as the growing cache."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
)

from rc1_lib.training.rollout import roll_out as rolling
from rc1_lib.training.rollout import slot_decoder
from rc1_lib.training.rollout.decoder import Decoding, RolloutError
from rc1_lib.training.rollout.roll_out import Batching, roll_out
from rc1_lib.training.rollout.slot_decoder import SlotDecoder, SlotLayer
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.shares import share
from tests.training.rollout.standin import WIDE, StandInChat, sampling, starts, with_lora
from tests.training.rollout.test_against_full_forward import CLOSE, largest_gap
from tests.training.rollout.test_invariance import same

NUMBERS = [0, 9, 3, 0, 5, 1, 12, 2] * 3
SLOTS = Batching(rows=64, prefill_tokens=4096, decoder=Decoding.SLOTS)


class KernelLog(TorchDispatchMode):
    """Logs the kernel calls within its block, and can repeat them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[OpOverload, Any, Any]] = []

    def __torch_dispatch__(
        self, kernel: OpOverload, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = kernel(*args, **(kwargs or {}))
        self.calls.append((kernel, (args, kwargs or {}), found))
        return found

    def again(self, wanted: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Repeat all calls and return the new tensors in place of `wanted`."""
        replaced: dict[int, Tensor] = {}

        def current(each: Any) -> Any:
            return replaced.get(id(each), each)

        for kernel, given, found in self.calls:
            args, kwargs = tree_map(current, given)
            replaced |= {
                id(old): new for old, new in zip(tree_leaves(found), tree_leaves(kernel(*args, **kwargs)), strict=True)
            }
        return tuple(map(current, wanted))


class Recorder:
    """Imitates CUDA graphs on a CPU: records the kernel calls of a step and replays them."""

    def __init__(self) -> None:
        self.steps: list[KernelLog] = []
        self.replays = 0

    def record(self, run: Callable[[], tuple[Tensor, Tensor]]) -> Callable[[], tuple[Tensor, Tensor]]:
        with KernelLog() as log:
            kept = run()
        self.steps.append(log)

        def replay() -> tuple[Tensor, Tensor]:
            self.replays += 1
            # A graph's replay writes its results into the same tensors.
            logits_BV, states_BD = (place.copy_(found) for place, found in zip(kept, log.again(kept), strict=True))
            return logits_BV, states_BD

        return replay


@pytest.fixture(scope="module")
def played(chat: StandInChat, memorized: PreTrainedModel) -> list[Trajectory]:
    return roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), WIDE, keep_states=True)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Makes all decoders record their steps."""
    recorder = Recorder()
    monkeypatch.setattr(
        rolling, "decoder_of", lambda model, pad, rows, _: SlotDecoder(model, pad, rows, recorder.record)
    )
    return recorder


@pytest.mark.parametrize("rows, prefill", share([(64, 4096), (1, 4096), (5, 4096), (7, 1), (24, 60)], 64, 7))
def test_slots_sample_the_same_as_the_growing_cache(
    chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory], rows: int, prefill: int
) -> None:
    batching = Batching(rows=rows, prefill_tokens=prefill, decoder=Decoding.SLOTS)
    again = roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), batching, keep_states=True)
    assert same(again, played)
    for ours, theirs in zip(again, played, strict=True):
        assert ours.states is not None and theirs.states is not None
        assert abs(ours.states - theirs.states).max() < 1e-4


def test_repeated_rollout_has_the_same_bits(chat: StandInChat, memorized: PreTrainedModel) -> None:
    first, second = (roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), SLOTS) for _ in range(2))
    assert same(first, second, within=0.0)


def test_keys_and_values_are_freed_when_a_rollout_ends(
    chat: StandInChat, memorized: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They must not wait for the garbage collector: they are gigabytes, and training needs the memory."""
    buffers = list[weakref.ref[Tensor]]()
    zeros = SlotLayer._zeros

    def kept(layer: SlotLayer, like: Tensor) -> Tensor:
        made = zeros(layer, like)
        buffers.append(weakref.ref(made))
        return made

    monkeypatch.setattr(SlotLayer, "_zeros", kept)
    gc.collect()
    gc.disable()
    try:
        roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), SLOTS)
        assert buffers and all(one() is None for one in buffers)
    finally:
        gc.enable()


def test_slots_use_the_adapter(chat: StandInChat, memorized: PreTrainedModel) -> None:
    model = with_lora(copy.deepcopy(memorized)).eval()
    assert largest_gap(model, roll_out(model, chat, starts(chat, NUMBERS[:8]), sampling(), SLOTS), 1.0) < CLOSE


def test_bf16_slots_are_near_the_full_forward_pass(chat: StandInChat, memorized: PreTrainedModel) -> None:
    model = copy.deepcopy(memorized).to(torch.bfloat16)
    assert largest_gap(model, roll_out(model, chat, starts(chat, NUMBERS[:8]), sampling(), SLOTS), 1.0) < 0.5


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_slots_support_learned_positions_and_both_kinds_of_attention(chat: StandInChat, attention: str) -> None:
    torch.manual_seed(5)
    config = GPT2Config(
        vocab_size=chat.size, pad_token_id=0, bos_token_id=1, eos_token_id=chat.end_id,
        n_embd=32, n_layer=2, n_head=4, n_positions=250, attn_implementation=attention,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(8.0)  # else initial weights give equal outputs for all contexts
    again = roll_out(model, chat, starts(chat, NUMBERS[:8]), sampling(turn_tokens=240), SLOTS)
    assert max(len(trajectory.ids) for trajectory in again) == 250, "no row reached the last position"
    assert largest_gap(model, again, 1.0) < 1e-4


def test_sliding_window_is_rejected(chat: StandInChat) -> None:
    config = MistralConfig(
        vocab_size=chat.size, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, sliding_window=16, max_position_embeddings=256,
    )  # fmt: skip
    with pytest.raises(RolloutError, match=r"training\.rollout\.decoder: .*'mistral'.* 16 .*growing"):
        roll_out(MistralForCausalLM(config).eval(), chat, starts(chat, [0]), sampling(), SLOTS)


def test_graphs_are_rejected_on_a_cpu(chat: StandInChat, memorized: PreTrainedModel) -> None:
    graphs = Batching(rows=4, prefill_tokens=64, decoder=Decoding.GRAPHS)
    with pytest.raises(RolloutError, match=r"training\.rollout\.decoder: .*'graphs'.*'cpu'"):
        roll_out(memorized, chat, starts(chat, [0]), sampling(), graphs)


@pytest.mark.parametrize("rows", share([64, 5], 5))
def test_recorded_steps_read_all_inputs_from_persistent_tensors(
    chat: StandInChat, memorized: PreTrainedModel, played: list[Trajectory], recorded: Recorder, rows: int
) -> None:
    """A recording has no Python: a token, position or row that it reads as a number would never change."""
    batching = Batching(rows=rows, prefill_tokens=4096)
    again = roll_out(memorized, chat, starts(chat, NUMBERS), sampling(), batching, keep_states=True)
    assert same(again, played)
    states = [(ours.states, theirs.states) for ours, theirs in zip(again, played, strict=True)]
    assert all(a is not None and b is not None and abs(a - b).max() < 1e-4 for a, b in states)
    assert recorded.replays > 5 * len(recorded.steps), "recordings are replayed too rarely to pay off"
    # CUDA rejects data from the host (`torch.tensor`) in a recording.
    called = {str(kernel) for step in recorded.steps for kernel, _, _ in step.calls}
    assert not {name for name in called if "lift_fresh" in name or "_local_scalar_dense" in name}
    assert any("index_put_" in name for name in called)


def test_steps_are_recorded_again_when_slots_run_out(
    chat: StandInChat,
    memorized: PreTrainedModel,
    played: list[Trajectory],
    recorded: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slot_decoder, "LEAST_SLOTS", 16)
    again = roll_out(memorized, chat, starts(chat, NUMBERS[:8]), sampling(), WIDE)
    assert same(again, played[:8])
    assert len(recorded.steps) > 6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_cuda_graphs_sample_the_same_as_slots(chat: StandInChat, memorized: PreTrainedModel) -> None:
    model = copy.deepcopy(memorized).cuda()  # type: ignore[arg-type]
    graphs = Batching(rows=64, prefill_tokens=4096, decoder=Decoding.GRAPHS)
    first, second = (roll_out(model, chat, starts(chat, NUMBERS), sampling(), each) for each in (SLOTS, graphs))
    assert same(first, second)
