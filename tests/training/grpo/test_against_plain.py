"""The update against a slow GRPO: one token at a time, without padding, mask and chunks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean, stdev

import pytest
import torch
from torch import Tensor

from rc1_lib.training.engines.torch_grpo import GRPOSettings, grpo_update
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.updates.batch import collate
from tests.training.grpo.toys import rollouts, settings
from tests.training.ppo.plain_update import predict, steps_of
from tests.training.ppo.toys import ToyPolicy

KL = 0.3


def plain_loss(policy: ToyPolicy, episodes: Sequence[Trajectory], scores: Sequence[float], by: GRPOSettings) -> Tensor:
    """The loss of a single minibatch of all episodes, as in the papers."""
    of_row = defaultdict(list)
    for episode, score in zip(episodes, scores, strict=True):
        of_row[episode.row_id].append(score)
    losses, tokens = list[Tensor](), 0
    for episode, score in zip(episodes, scores, strict=True):
        others = of_row[episode.row_id]
        advantage = (score - mean(others)) / (stdev(others) + 1e-4)
        steps = steps_of(episode)
        with policy.reference(), torch.no_grad():
            reference = [predict(policy, episode, at, by.temperature)[0][episode.ids[at]] for at in steps]
        loss = torch.zeros((), dtype=torch.float64)
        for at, q in zip(steps, reference, strict=True):
            p = predict(policy, episode, at, by.temperature)[0][episode.ids[at]]
            ratio = p / math.exp(episode.logprobs[at])
            kept = torch.clip(ratio, 1 - by.clip, 1 + by.clip)
            gain = torch.minimum(ratio * advantage, kept * advantage)
            loss = loss - gain + KL * (q / p - torch.log(q / p) - 1)
        losses.append(loss)
        tokens += len(steps)
    return torch.stack(losses).sum() / tokens


def test_update_follows_the_gradient_of_the_papers_loss() -> None:
    by = settings(temperature=1.2, max_grad_norm=1e9)
    episodes, scores = rollouts([3, 2, 3])
    policy, plain = ToyPolicy(), ToyPolicy()
    batch = collate(episodes, scores, pad_id=0, dtype=torch.float64)
    optimizer = torch.optim.SGD(policy.adapter.parameters(), lr=1.0)
    draw = torch.Generator().manual_seed(1)
    metrics = grpo_update(policy, batch, optimizer, by, kl_coef=KL, generator=draw)
    loss = plain_loss(plain, episodes, scores, by)
    loss.backward()
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-12)
    assert metrics["policy/clipfrac_avg"] > 0, "the case must reach the clipping"
    for mine, theirs in zip(policy.adapter.parameters(), plain.adapter.parameters(), strict=True):
        assert theirs.grad is not None and theirs.grad.abs().max() > 1e-3
        torch.testing.assert_close(mine.detach(), (theirs - theirs.grad).detach(), atol=1e-12, rtol=0)


def test_equal_scores_leave_only_the_kl_gradient() -> None:
    episodes, scores = rollouts([3, 3])
    batch = collate(episodes, [0.5] * len(scores), pad_id=0, dtype=torch.float64)
    for kl_coef, moves in ((0.0, False), (0.1, True)):
        policy = ToyPolicy()
        optimizer = torch.optim.SGD(policy.adapter.parameters(), lr=1.0)
        draw = torch.Generator().manual_seed(1)
        metrics = grpo_update(policy, batch, optimizer, settings(), kl_coef=kl_coef, generator=draw)
        assert metrics["frac_reward_zero_std"] == 1
        assert (metrics["grad_norm"] > 0) is moves
