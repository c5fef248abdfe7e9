"""PPO solves a bandit with a known optimum, with and without a KL penalty."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rc1_lib.training.engines.torch_ppo import PPOSettings, ppo_update
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.updates import losses
from rc1_lib.training.updates.batch import collate
from rc1_lib.training.updates.losses import FixedKL
from tests.training.ppo.toys import ToyPolicy, episode, settings

ARMS = torch.tensor([0.1, 0.9, 0.3, 0.5], dtype=torch.float64)


class Bandit(ToyPolicy):
    """One distribution over four arms, any value; the reference draws the arms 4 : 1 : 2 : 1."""

    def __init__(self) -> None:
        super().__init__(vocabulary=4, width=4)
        self.unembedding = nn.Identity()
        self.prior = torch.tensor([4.0, 1, 2, 1], dtype=torch.float64).log()
        for parameter in self.adapter.parameters():
            nn.init.zeros_(parameter)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return super().logits(hidden) + self.prior

    def hidden(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor | None = None) -> torch.Tensor:
        nothing = torch.zeros(*ids_BT.shape, 4, dtype=torch.float64)
        return self.adapter(nothing) if self.adapted else nothing

    def arms(self) -> torch.Tensor:
        return torch.softmax(self.logits(self.hidden(torch.zeros(1, 1, dtype=torch.long)))[0, 0], -1).detach()


def play_bandit(policy: Bandit, draw: torch.Generator, count: int) -> tuple[list[Trajectory], list[float]]:
    arms = policy.arms()
    pulls = torch.multinomial(arms, count, replacement=True, generator=draw).tolist()
    episodes = [
        episode(str(number), [(False, [0]), (True, [arm])], [float(arms[arm].log())])
        for number, arm in enumerate(pulls)
    ]
    return episodes, [float(ARMS[arm]) for arm in pulls]


def train_bandit(policy: Bandit, chosen: PPOSettings, control: FixedKL, iterations: int, *, decay: bool) -> list[float]:
    """The mean KL of the episodes of every iteration."""
    draw, kls = torch.Generator().manual_seed(0), []
    optimizer = torch.optim.Adam(policy.trained(), lr=0.05)
    for iteration in range(iterations):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - decay * iteration / iterations)
        batch = collate(*play_bandit(policy, draw, 256), pad_id=0, dtype=torch.float64)
        metrics = ppo_update(
            policy, batch, optimizer, chosen, kl_coef=control.coef, iteration=iteration, generator=draw
        )
        control.update(metrics["objective/kl"])
        kls.append(metrics["objective/kl"])
    return kls


def test_bandit_with_a_kl_penalty_reaches_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """E[reward] - beta * KL(policy, reference) is largest at the normalized reference * exp(reward / beta)."""
    # Whitened advantages never shrink, so the policy would keep moving around the optimum.
    monkeypatch.setattr(losses, "whiten", lambda advantages, mask: advantages)
    policy, beta = Bandit(), 0.4
    chosen = settings(micro_tokens=1024, minibatches=4)
    train_bandit(policy, chosen, FixedKL(beta), 60, decay=True)
    best = torch.softmax(policy.prior + ARMS / beta, -1)
    torch.testing.assert_close(policy.arms(), best, atol=1e-3, rtol=0)
