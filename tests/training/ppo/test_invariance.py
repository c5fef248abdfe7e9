"""Order of episodes, micro-batches and padding do not change the update of a real model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad
from transformers import Qwen3ForCausalLM

from rc1_lib.training.engines.torch_ppo import ppo_update
from rc1_lib.training.policy import ValuedPolicy
from rc1_lib.training.train_config import LoraSection
from rc1_lib.training.updates.batch import EpisodeBatch, collate
from tests.training.ppo.toys import random_episodes, settings
from tests.training.tiny import shape

VOCABULARY = 40


def small_qwen() -> ValuedPolicy:
    """A policy with random weights and a non-zero adapter."""
    torch.manual_seed(0)
    lora = LoraSection(enable=True, r=4, alpha=8, dropout=0.0, target_modules=("q_proj", "v_proj", "down_proj"))
    policy = ValuedPolicy(Qwen3ForCausalLM(shape(VOCABULARY, 16, head_dim=8)), lora, seed=1)
    for parameter in policy.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.1)
    return policy


def learn(batch: EpisodeBatch, micro_tokens: int) -> tuple[dict[str, float], torch.Tensor]:
    """Take two steps with SGD, as Adam would amplify rounding."""
    policy = small_qwen()
    metrics = ppo_update(
        policy,
        batch,
        torch.optim.SGD([p for p in policy.parameters() if p.requires_grad], lr=0.1),
        settings(minibatches=2, micro_tokens=micro_tokens),
        kl_coef=0.05,
        iteration=0,
        generator=torch.Generator().manual_seed(0),
    )
    return metrics, torch.cat([p.detach().flatten() for p in policy.parameters() if p.requires_grad])


def batch_of(order: int = 1, pad_id: int = 0) -> EpisodeBatch:
    episodes, scores = random_episodes(9, vocabulary=VOCABULARY)
    return collate(episodes[::order], scores[::order], pad_id)


def wider(batch: EpisodeBatch) -> EpisodeBatch:
    columns = {name: pad(getattr(batch, name), (0, 7)) for name in ("ids", "action_mask", "old_logprobs")}
    return replace(batch, **columns)


@pytest.mark.parametrize(
    ("other", "micro_tokens"),
    [
        (lambda: batch_of(), 1),
        (lambda: batch_of(), 40),
        (lambda: batch_of(order=-1), 10_000),
        (lambda: batch_of(pad_id=17), 10_000),
        (lambda: wider(batch_of()), 10_000),
    ],
    ids=["each row alone", "small micro-batches", "episodes reversed", "another pad id", "more padding"],
)
def test_update_is_independent_of(other: Callable[[], EpisodeBatch], micro_tokens: int) -> None:
    expected, expected_weights = learn(batch_of(), micro_tokens=10_000)
    found, weights = learn(other(), micro_tokens)
    assert found == pytest.approx(expected, abs=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=0)


def test_repeated_update_has_the_same_bits() -> None:
    (one, weights), (other, again) = (learn(batch_of(), micro_tokens=40) for _ in range(2))
    assert one == other and torch.equal(weights, again)
