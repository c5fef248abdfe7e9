"""The log-probabilities of a rollout equal those of a full forward pass."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch
from transformers import (
    BitsAndBytesConfig,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen3ForCausalLM,
)

from rc1_lib.training.base_model import disable_repacking
from rc1_lib.training.rollout.roll_out import Batching, roll_out
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.rollout.standin import WIDE, StandInChat, sampling, starts, with_lora

NUMBERS = [0, 8, 3, 1, 5, 2]
FEW = Batching(rows=4, prefill_tokens=64)
CLOSE = 1e-4
"""Nats. Logits up to 20 have steps of 2e-6 in float32, sums of them a few more; a wrong mask or position gives 1e-2."""


@torch.no_grad()
def largest_gap(model: PreTrainedModel, trajectories: list[Trajectory], temperature: float) -> float:
    """The largest difference to a forward pass over each single trajectory."""
    worst = 0.0
    for each in trajectories:
        logits_TV = model(input_ids=torch.tensor([each.ids])).logits[0].float()
        logprobs_TV = torch.log_softmax(logits_TV / temperature, dim=-1)
        for place, own in enumerate(each.action_mask):
            assert math.isnan(each.logprobs[place]) is not own
            if own:
                worst = max(worst, abs(float(logprobs_TV[place - 1, each.ids[place]]) - each.logprobs[place]))
    return worst


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_are_those_at_the_sampling_temperature(
    chat: StandInChat, memorized: PreTrainedModel, temperature: float
) -> None:
    played = roll_out(memorized, chat, starts(chat, NUMBERS), sampling(temperature), WIDE)
    assert max(trajectory.outcome.turns for trajectory in played) >= 2
    assert largest_gap(memorized, played, temperature) < CLOSE


def test_greedy_tokens_have_log_probabilities_of_temperature_1(chat: StandInChat, memorized: PreTrainedModel) -> None:
    played = roll_out(memorized, chat, starts(chat, NUMBERS), sampling(0.0), WIDE)
    assert largest_gap(memorized, played, 1.0) < CLOSE


def test_rollout_uses_the_adapter_and_restores_the_model(chat: StandInChat, memorized: PreTrainedModel) -> None:
    model = with_lora(copy.deepcopy(memorized)).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    played = roll_out(model, chat, starts(chat, NUMBERS), sampling(), FEW)
    assert model.training
    after = model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    model.eval()
    assert largest_gap(model, played, 1.0) < CLOSE
    assert largest_gap(memorized, played, 1.0) > 1e-2, "the adapter changed nothing"


def test_nf4_model_with_an_adapter_equals_its_full_forward_pass(
    chat: StandInChat, memorized: PreTrainedModel, tmp_path: Path
) -> None:
    memorized.save_pretrained(tmp_path)
    nf4 = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    model = with_lora(Qwen3ForCausalLM.from_pretrained(tmp_path, quantization_config=nf4, device_map="cpu"))
    disable_repacking(model)
    assert type(model.model.layers[0].mlp.up_proj.base_layer).__name__ == "Linear4bit"
    model.eval()
    played = roll_out(model, chat, starts(chat, NUMBERS), sampling(), FEW)
    assert largest_gap(model, played, 1.0) < CLOSE


def other_models(chat: StandInChat) -> dict[str, PreTrainedModel]:
    torch.manual_seed(5)
    small = {"vocab_size": chat.size, "max_position_embeddings": 256, "pad_token_id": 0, "bos_token_id": 1}
    small["eos_token_id"] = chat.end_id
    wide = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    wide |= {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 16}
    heads = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
    return {
        "sliding windows": MistralForCausalLM(MistralConfig(**small, **wide)).eval(),
        "capped logits and windows in every other layer": Gemma2ForCausalLM(Gemma2Config(**small, **wide)).eval(),
        "learned positions": GPT2LMHeadModel(GPT2Config(**{**small, **heads})).eval(),
    }


@pytest.mark.parametrize(
    "name", ["sliding windows", "capped logits and windows in every other layer", "learned positions"]
)
def test_other_architectures_equal_their_full_forward_pass(chat: StandInChat, name: str) -> None:
    model = other_models(chat)[name]
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(8.0)  # else initial weights give equal outputs for all contexts
    played = roll_out(model, chat, starts(chat, NUMBERS), sampling(turn_tokens=60), FEW)
    assert max(len(trajectory.ids) for trajectory in played) > 60
    assert largest_gap(model, played, 1.0) < 1e-4
