"""A whole update equals one that is computed one token at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from rc1_lib.training.engines.torch_ppo import PPOSettings, ppo_update
from rc1_lib.training.updates.batch import collate
from tests.training.ppo.plain_update import plain_update
from tests.training.ppo.toys import ToyPolicy, random_episodes, settings


def adam(policy: ToyPolicy) -> torch.optim.Optimizer:
    return torch.optim.AdamW(policy.trained(), lr=0.01)


def above_the_others(scores: Sequence[float], kinds: str) -> list[float]:
    """Each score above the mean of the other scores of its kind, or of all other scores where its kind has no other."""
    found = []
    for at, score in enumerate(scores):
        others = [(kinds[other], scores[other]) for other in range(len(scores)) if other != at]
        alike = [worth for kind, worth in others if kind == kinds[at]] or [worth for _, worth in others]
        found.append(score - sum(alike) / len(alike))
    return found


@pytest.mark.parametrize(
    ("chosen", "kinds"),
    [
        (settings(), None),
        (settings(minibatches=3, temperature=0.7), "abacbaa"),
        (settings(lam=1.0, minibatches=2, max_grad_norm=0.05), None),
    ],
    ids=["one step", "minibatches, temperature and kinds", "strongly clipped"],
)
def test_update_equals_the_plain_one(chosen: PPOSettings, kinds: str | None) -> None:
    episodes, scores = random_episodes(7)
    policy, plain = ToyPolicy(), ToyPolicy()
    metrics = ppo_update(
        policy,
        collate(episodes, scores, pad_id=0, kinds=kinds, dtype=torch.float64),
        adam(policy),
        chosen,
        kl_coef=0.1,
        iteration=0,
        generator=torch.Generator().manual_seed(5),
    )
    worth = above_the_others(scores, kinds) if kinds else scores
    losses = plain_update(
        plain, episodes, worth, adam(plain), chosen, kl_coef=0.1, generator=torch.Generator().manual_seed(5)
    )
    assert metrics["update/steps"] == len(losses) == chosen.update.minibatches
    assert metrics["loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-9)
    assert 0 < metrics["policy/clipfrac_avg"] < 1, "the case must reach both sides of the clipping"
    for mine, theirs, first in zip(policy.trained(), plain.trained(), ToyPolicy().trained(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)
        assert not torch.equal(mine, first), "the update must change every parameter"
