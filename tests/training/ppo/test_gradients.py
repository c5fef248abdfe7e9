"""Gradients against finite differences."""

from __future__ import annotations

import pytest
import torch

from rc1_lib.training.engines.torch_ppo import PPOObjective, targets_of
from rc1_lib.training.updates.batch import collate
from rc1_lib.training.updates.forward import action_tokens
from rc1_lib.training.updates.take_steps import add_gradients
from tests.training.ppo.toys import ToyPolicy, random_episodes, settings


def objective_for(policy: ToyPolicy, *, frozen: bool = False) -> PPOObjective:
    """Use targets of another policy, so that ratios and values are off."""
    episodes, scores = random_episodes(5, seed=3)
    batch = collate(episodes, scores, pad_id=0, dtype=torch.float64)
    chosen = settings(temperature=1.3)
    targets = targets_of(ToyPolicy(seed=8), batch, chosen, 0.1)
    return PPOObjective(policy.value_head, batch, targets, chosen, normaliser=20.0, frozen=frozen)


def gradients(policy: ToyPolicy, objective: PPOObjective) -> tuple[dict[str, float], list[torch.Tensor | None]]:
    policy.zero_grad(set_to_none=True)
    sums = add_gradients(policy, objective, action_tokens(objective.batch, range(5)), lambda loss: loss)
    return {name: float(value) for name, value in sums.items()}, [parameter.grad for parameter in policy.trained()]


def test_every_gradient_equals_the_finite_difference_of_the_loss() -> None:
    policy = ToyPolicy()
    objective = objective_for(policy)
    sums, found = gradients(policy, objective)
    assert sums["clipped"] > 0, "the case must reach the clipping"
    nudge = 1e-6
    for parameter, gradient in zip(policy.trained(), found, strict=True):
        assert gradient is not None
        for place in range(parameter.numel()):
            flat = parameter.data.view(-1)
            middle = float(flat[place])
            losses = []
            for shift in (nudge, -nudge):
                flat[place] = middle + shift
                losses.append(gradients(policy, objective)[0]["loss"])
            flat[place] = middle
            slope = (losses[0] - losses[1]) / (2 * nudge)
            assert float(gradient.view(-1)[place]) == pytest.approx(slope, abs=1e-8)


def test_frozen_policy_trains_only_the_value_head_with_the_same_gradients() -> None:
    policy = ToyPolicy()
    _, free = gradients(policy, objective_for(policy))
    _, frozen = gradients(policy, objective_for(policy, frozen=True))
    adapter = len(list(policy.adapter.parameters()))
    assert all(gradient is None for gradient in frozen[:adapter])
    for one, other in zip(frozen[adapter:], free[adapter:], strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)
