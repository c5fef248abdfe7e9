"""The policy: a frozen base, an adapter that can be disabled, and a value head."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Qwen3ForCausalLM

from rc1_lib.errors import RC1Error
from rc1_lib.training.policy import ValuedPolicy
from rc1_lib.training.train_config import LoraSection
from tests.training.tiny import shape

ADAPTER = LoraSection(enable=True, r=4, alpha=8, dropout=0.0, target_modules=("q_proj", "v_proj", "down_proj"))
IDS_BT = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]])


def base() -> Qwen3ForCausalLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return Qwen3ForCausalLM(shape(16, 16, head_dim=8, max_position_embeddings=32)).eval()


def policy(seed: int = 0, adapter: LoraSection = ADAPTER) -> ValuedPolicy:
    made = ValuedPolicy(base(), adapter, seed)
    made.train(False)
    return made


def trained(made: ValuedPolicy, steps: int = 3) -> ValuedPolicy:
    optimizer = torch.optim.AdamW([*made.adapter_parameters(), *made.value_head.parameters()], lr=0.05)
    for _ in range(steps):
        hidden_BTD = made.hidden(IDS_BT)
        loss = torch.nn.functional.cross_entropy(made.logits(hidden_BTD[:, :-1]).flatten(0, 1), IDS_BT[:, 1:].flatten())
        (loss + (made.value_head(hidden_BTD) - 1.0).pow(2).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return made


@torch.no_grad()
def logits_of(made: ValuedPolicy) -> Tensor:
    return made.logits(made.hidden(IDS_BT))


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(value, right[name]) for name, value in left.items())


@torch.no_grad()
def test_new_policy_equals_the_base_bit_for_bit_and_has_values_of_0() -> None:
    made = policy()
    assert torch.equal(logits_of(made), base()(input_ids=IDS_BT).logits)
    assert torch.equal(made.value_head(made.hidden(IDS_BT)), torch.zeros(2, 8))


@torch.no_grad()
def test_reference_stays_the_base_bit_for_bit_during_training() -> None:
    with torch.enable_grad():
        made = trained(policy())
    pinned = base()(input_ids=IDS_BT).logits
    assert not torch.equal(logits_of(made), pinned)
    with made.reference():
        assert torch.equal(logits_of(made), pinned)
    assert not torch.equal(logits_of(made), pinned)


@pytest.mark.parametrize(("gradient", "arrives"), [(1e-31, False), (1e-29, True), (float("nan"), True)])
def test_tiny_gradients_of_logits_are_zeros(gradient: float, arrives: bool) -> None:
    made = policy()
    states = made.hidden(IDS_BT).detach().requires_grad_()
    logits = made.logits(states)
    logits.backward(torch.full_like(logits, gradient))
    assert states.grad is not None and bool((states.grad != 0).any()) is arrives


def test_only_the_adapter_and_the_value_head_require_gradients() -> None:
    made = policy()
    learning = {id(value) for value in made.parameters() if value.requires_grad}
    listed = [*made.adapter_parameters(), *made.value_head.parameters()]
    assert {id(value) for value in listed} == learning and len(listed) == len(learning)
    assert len(made.adapter_parameters()) == 2 * 3 * 2
    shapes = [value.shape for value in made.adapter_parameters()]
    assert shapes == [value.shape for value in policy(seed=4).adapter_parameters()]


@pytest.mark.parametrize("other", [{"r": 2}, {"target_modules": ("q_proj",)}])
def test_adapter_of_another_shape_is_rejected_and_changes_nothing(other: dict[str, Any]) -> None:
    made = trained(policy())
    before = made.adapter_state()
    with pytest.raises(RC1Error, match=r"adapter.*lora_[AB]\.weight', \("):
        made.load_adapter_state(policy(adapter=ADAPTER.model_copy(update=other)).adapter_state())
    assert same(made.adapter_state(), before)


def test_state_of_an_adapted_head_is_its_adapter_alone() -> None:
    state = policy(adapter=ADAPTER.model_copy(update={"target_modules": ("q_proj", "lm_head")})).adapter_state()
    assert any("lm_head" in name for name in state) and all(".lora_" in name for name in state)
