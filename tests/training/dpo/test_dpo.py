"""Pairs by hand, and the update against DPO's formula on whole episodes, with torch's own gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rc1_lib.errors import RC1Error
from rc1_lib.training.engines.torch_dpo import Pair, dpo_update, pairs_of
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.updates.batch import collate
from tests.training.grpo.toys import rollouts
from tests.training.ppo.plain_update import predict, steps_of
from tests.training.ppo.toys import ToyPolicy, update_section

BETA, TEMPERATURE = 0.4, 1.2


def learned(policy: ToyPolicy, episodes: list[Trajectory], scores: list[float], **changes: Any) -> dict[str, float]:
    batch = collate(episodes, scores, pad_id=0, dtype=torch.float64)
    optimizer = torch.optim.SGD(policy.adapter.parameters(), lr=1.0)
    draw = torch.Generator().manual_seed(1)
    return dpo_update(
        policy,
        batch,
        optimizer,
        update_section(max_grad_norm=1e9, kl_stop=1e9, **changes),
        temperature=TEMPERATURE,
        beta=BETA,
        generator=draw,
    )


def logprob(policy: ToyPolicy, episode: Trajectory) -> Tensor:
    """Sum the log-probabilities of all own tokens, one at a time."""
    return torch.stack(
        [predict(policy, episode, at, TEMPERATURE)[0][episode.ids[at]].log() for at in steps_of(episode)]
    ).sum()


def margin(policy: ToyPolicy, chosen: Trajectory, rejected: Trajectory) -> Tensor:
    with policy.reference(), torch.no_grad():
        before = logprob(policy, chosen) - logprob(policy, rejected)
    return BETA * (logprob(policy, chosen) - logprob(policy, rejected) - before)


def test_best_and_worst_of_every_group_are_a_pair() -> None:
    scores = torch.tensor([0.1, 0.9, 0.5, 0.7, 0.7, 0.2, 0.2, 0.8])
    groups = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])
    assert pairs_of(scores, groups) == [Pair(1, 0, True), Pair(3, 4, False), Pair(7, 6, True)]


def test_update_follows_the_gradient_of_the_papers_loss() -> None:
    episodes, scores = rollouts([3, 2, 1])
    policy, plain = ToyPolicy(), ToyPolicy()
    metrics = learned(policy, episodes, scores)
    losses = []
    for group in (range(3), range(3, 5)):  # the last group has only one rollout
        best, worst = max(group, key=scores.__getitem__), min(group, key=scores.__getitem__)
        losses.append(-logsigmoid(margin(plain, episodes[best], episodes[worst])))
    loss = torch.stack(losses).mean()
    loss.backward()
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-12)
    assert metrics["pairs/differ"] == 1
    for mine, theirs in zip(policy.adapter.parameters(), plain.adapter.parameters(), strict=True):
        assert theirs.grad is not None and theirs.grad.abs().max() > 1e-3
        torch.testing.assert_close(mine.detach(), (theirs - theirs.grad).detach(), atol=1e-12, rtol=0)


def test_second_epoch_uses_the_policy_after_the_first() -> None:
    episodes, scores = rollouts([3, 3])
    twice, once = ToyPolicy(), ToyPolicy()
    learned(twice, episodes, scores, epochs=2)
    for _ in range(2):
        learned(once, episodes, scores)
    for mine, theirs in zip(twice.adapter.parameters(), once.adapter.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)


def test_equal_rollouts_change_nothing_and_a_step_without_pairs_is_rejected() -> None:
    episodes, _ = rollouts([3, 3])
    policy, before = ToyPolicy(), ToyPolicy()
    metrics = learned(policy, episodes, [0.5] * 6)
    assert metrics["pairs/differ"] == 0 and metrics["grad_norm"] == 0
    assert torch.equal(policy.adapter.weight, before.adapter.weight)
    singles, scores = rollouts([1, 1])
    with pytest.raises(RC1Error, match=r"2 .* 2 prompts .*training\.update\.group_size"):
        learned(policy, singles, scores)


def test_micro_batch_size_and_rollout_order_do_not_change_the_update() -> None:
    episodes, scores = rollouts([3, 3, 2])
    ends = []
    for micro_tokens, turn in ((1, 1), (1000, -1)):
        policy = ToyPolicy()
        learned(policy, episodes[::turn], scores[::turn], micro_tokens=micro_tokens, minibatches=2, entropy_coef=0.01)
        ends.append(policy.adapter.weight.detach())
    torch.testing.assert_close(ends[0], ends[1], atol=1e-12, rtol=0)
