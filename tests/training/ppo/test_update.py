"""PPO's update: what it changes, when it stops, and its metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import pad

from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.engines.torch_ppo import ppo_update
from rc1_lib.training.updates.batch import EpisodeBatch, collate
from tests.training.ppo.toys import ToyPolicy, episode, random_episodes, settings


def batch_of(policy: ToyPolicy) -> EpisodeBatch:
    """Episodes with the policy's own log-probabilities, as after a rollout."""
    episodes, scores = random_episodes(8)
    batch = collate(episodes, scores, pad_id=0, dtype=torch.float64)
    with torch.no_grad():
        log_p_BTV = torch.log_softmax(policy.logits(policy.hidden(batch.ids)), -1)
    sampled_BT = log_p_BTV[:, :-1].gather(2, batch.ids[:, 1:, None])[..., 0]
    return replace(batch, old_logprobs=pad(sampled_BT, (1, 0)) * batch.action_mask)


def update(
    policy: ToyPolicy, batch: EpisodeBatch, *, iteration: int = 0, rate: float = 0.05, **changes: object
) -> dict[str, float]:
    scaler = changes.pop("scaler", None)
    return ppo_update(
        policy,
        batch,
        torch.optim.AdamW(policy.trained(), lr=rate, weight_decay=0.1),
        settings(**changes),
        kl_coef=0.1,
        iteration=iteration,
        generator=torch.Generator().manual_seed(0),
        scaler=scaler,  # type: ignore[arg-type]
    )


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters() if parameter.requires_grad]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_value_warm_up_changes_only_the_value_head() -> None:
    policy = ToyPolicy()
    batch = batch_of(policy)
    adapter, head = weights(policy.adapter), weights(policy.value_head)
    metrics = update(policy, batch, iteration=1, value_warm_up=2, minibatches=3)
    assert same(weights(policy.adapter), adapter) and not same(weights(policy.value_head), head)
    assert metrics["ratio"] == pytest.approx(1, abs=1e-12)
    update(policy, batch, iteration=2, value_warm_up=2)
    assert not same(weights(policy.adapter), adapter)


def test_update_stops_before_the_step_that_exceeds_kl_stop() -> None:
    policy, other = ToyPolicy(), ToyPolicy()
    stopped = update(policy, batch_of(policy), minibatches=2, kl_stop=1e-6)
    later = update(other, batch_of(other), minibatches=4, kl_stop=1e-6)
    for found in (stopped, later):
        assert found["update/stopped"] == 1 and found["update/steps"] == 1
    assert not same(weights(policy), weights(ToyPolicy())), "the first step must be taken"
    assert all(parameter.grad is None for parameter in policy.parameters())
    whole = ToyPolicy()
    assert update(whole, batch_of(whole), minibatches=2)["update/stopped"] == 0
    assert not same(weights(policy), weights(whole)), "the second step must not be taken"


def test_metrics_equal_numbers_by_hand() -> None:
    """Two episodes of 2 and 1 own tokens. The adapter is zero, so that the policy equals the reference."""
    policy = ToyPolicy()
    for parameter in policy.adapter.parameters():
        nn.init.zeros_(parameter)
    episodes = [
        episode("a", [(False, [1]), (True, [2]), (False, [3]), (True, [4])], [-1.0, -2.0]),
        episode("b", [(False, [1, 2]), (True, [3])], [-0.5]),
    ]
    batch = collate(episodes, [1.0, 0.0], pad_id=0, dtype=torch.float64)
    metrics = update(policy, batch, rate=0.0)
    states = policy.hidden(torch.tensor([[1, 2, 3, 0], [1, 2, 0, 0]]))
    log_p = torch.log_softmax(policy.logits(states), -1).detach()
    total = float(log_p[0, 0, 2] + log_p[0, 2, 4] + log_p[1, 1, 3])
    kl = (-3.5 - total) / 2
    assert metrics["kl"] == metrics["objective/kl"] == pytest.approx(kl)
    assert metrics["objective/kl_per_token"] == pytest.approx(kl * 2 / 3)
    assert metrics["objective/entropy"] == pytest.approx(3.5 / 2)
    assert metrics["objective/scores"] == 0.5 and metrics["objective/scores_std"] == 0.5
    assert metrics["objective/non_score_reward"] == pytest.approx(-0.1 * kl)
    assert metrics["objective/rlhf_reward"] == pytest.approx(0.5 - 0.1 * kl)
    assert metrics["objective/kl_coef"] == 0.1
    assert metrics["response_length/mean"] == 1.5
    picked = log_p[[0, 0, 1], [0, 2, 1]]
    assert metrics["policy/entropy_avg"] == pytest.approx(float(-(picked.exp() * picked).sum() / 3))
    assert all(isinstance(value, float) for value in metrics.values())


def test_metrics_show_what_kinds_leave_to_learn() -> None:
    """Where kinds explain all scores there is nothing to learn, and the value head gets no credit for it."""
    policy = ToyPolicy()
    for parameter in policy.value_head.parameters():
        nn.init.zeros_(parameter)
    episodes = [episode(name, [(False, [1]), (True, [2])], [-1.0]) for name in "abcd"]
    kinds = ["whole", "whole", "lacking", "lacking"]

    def of(scores: list[float]) -> dict[str, float]:
        return update(policy, collate(episodes, scores, pad_id=0, kinds=kinds, dtype=torch.float64), rate=0.0)

    found = update(
        policy, collate(episodes, [1.0, 1.0, 0.0, 0.0], pad_id=0, kinds=kinds, dtype=torch.float64), rate=0.0
    )
    assert found["objective/scores"] == 0.5 and found["objective/scores_std"] == 0.0
    found = update(
        policy, collate(episodes, [1.0, 0.5, 0.5, 0.0], pad_id=0, kinds=kinds, dtype=torch.float64), rate=0.0
    )
    assert found["objective/scores_std"] == 0.5
    assert found["critic/vf_explained_var"] == pytest.approx(0.0, abs=1e-6)


def test_non_finite_gradient_stops_the_run_and_changes_no_weight() -> None:
    policy = ToyPolicy()
    batch = batch_of(policy)
    before = weights(policy)
    with pytest.raises(DivergedError, match=r"\bnorm\b.* nan, "):
        update(policy, replace(batch, old_logprobs=batch.old_logprobs - 2000.0 * batch.action_mask))
    assert same(weights(policy), before)
