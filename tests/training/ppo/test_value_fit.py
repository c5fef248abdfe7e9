"""Fitting the value head to returns changes nothing else."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.optim import AdamW

from rc1_lib.training.engines.torch_ppo import TOKENS, fit_values, targets_of
from rc1_lib.training.policy import ValueHead
from rc1_lib.training.updates.take_steps import OptimizerStep
from tests.training.ppo.test_update import batch_of, update
from tests.training.ppo.toys import ToyPolicy, settings


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_value_head_fits_returns_that_depend_on_the_states() -> None:
    states = torch.randn(2 * TOKENS + 5, 8, generator=generator())
    returns = states[:, 0].tanh() - 0.3 * states[:, 1]
    torch.manual_seed(0)
    head = ValueHead(8)
    before = (returns - returns.mean()).square().mean()
    fit_values(head, states, returns, OptimizerStep(AdamW(head.parameters(), lr=0.01), 1.0, None), 40, generator())
    assert (returns - head(states)).square().mean() < 0.2 * before


def test_kept_states_are_those_before_own_tokens_in_order() -> None:
    policy = ToyPolicy()
    batch = batch_of(policy)
    for tokens in (10_000, 12):
        targets = targets_of(policy, batch, settings(value_epochs=1, micro_tokens=tokens), 0.1)
        assert torch.allclose(policy.value_head(targets.states), targets.values[batch.action_mask])
        kept = targets_of(policy, replace(batch, states=targets.states), settings(value_epochs=1), 0.1)
        assert torch.equal(kept.values, targets.values) and torch.allclose(kept.ref_logprobs, targets.ref_logprobs)


def test_value_epochs_do_not_change_the_policy_update() -> None:
    plain, more = ToyPolicy(), ToyPolicy()
    update(plain, batch_of(plain))
    update(more, batch_of(more), value_epochs=3)
    pairs = zip(plain.named_parameters(), more.named_parameters(), strict=True)
    moved = {name for (name, a), (_, b) in pairs if not torch.equal(a, b)}
    assert moved and all(name.startswith("value_head") for name in moved)
