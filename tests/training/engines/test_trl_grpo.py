"""`trl_grpo`: TRL's trainer gets RC1's episodes and scores and takes the same steps as `torch_grpo`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from rc1_lib.run import Run
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.engines.trl_grpo import groups_of
from rc1_lib.training.updates.batch import collate
from tests.shares import share
from tests.training.grpo.toys import rollouts
from tests.training.test_episode_engines import engine_of, played
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]


def scored(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch with scores that differ within every group."""
    return batch | {"scores": [0.1 * (place * 7 % 5) for place in range(len(batch["scores"]))]}


def updated(engine: PolicyEngine, batch: dict[str, Any]) -> tuple[dict[str, float], list[Tensor]]:
    """The metrics and gradients of an update with SGD, as AdamW would amplify rounding."""
    engine.optimizer = torch.optim.SGD(engine.policy.adapter_parameters(), lr=3.0)  # type: ignore[assignment]
    seen: list[Tensor] = []
    engine.optimizer.register_step_pre_hook(
        lambda optimizer, *_: seen.extend(each.grad.clone() for each in optimizer.param_groups[0]["params"])
    )
    return engine.train_step(dict(batch)), seen


@pytest.mark.parametrize("loss_type", share(["dapo", "grpo", "dr_grpo"], "dapo"))
def test_trl_grpo_and_torch_grpo_have_the_same_gradients(tiny: Tiny, loss_type: str) -> None:
    """Two steps on the same episodes: in the second, ratios are clipped and the KL is not 0."""
    found = []
    for name in ("trl_grpo", "torch_grpo"):
        settings = [f"training.grpo.loss_type={loss_type}", "training.grpo.clip_high=0.03"]
        settings += [f"training.update.{one}" for one in ("epochs=2", "minibatches=1", "max_grad_norm=1000000000.0")]
        settings += ["training.update.adaptive_kl=false", "training.trl_grpo.use_bias_correction_kl=false"]
        run = tiny(*ENGINES[name], "kl_coef=0.3", "clip=0.02", *settings)
        engine = engine_of(run)
        found.append(updated(engine, scored(played(engine, run))))
    (seen, of_trl), (expected, own) = found
    assert expected["policy/clipfrac_avg"] > 0.02 and expected["loss/kl_avg"] > 1e-5, "the case must reach both"
    one = len(own) // 2
    assert min(max(float(each.abs().max()) for each in step) for step in (own[:one], own[one:])) > 1e-3
    torch.testing.assert_close(of_trl[:one], own[:one], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(of_trl[one:], own[one:], atol=1e-5, rtol=1e-3)  # after a large first step
    for name in ("loss", "grad_norm", "frac_reward_zero_std", "update/steps"):
        assert seen[name] == pytest.approx(expected[name], abs=1e-5, rel=1e-3), name


def test_episode_without_a_score_does_not_contribute(tiny: Tiny) -> None:
    batch = collate(*rollouts([2, 1]), pad_id=0)
    first, second = groups_of(batch, 2, 2)
    assert [one["score"] for one in (*first, *second)] == [*batch.scores[:2].tolist(), float(batch.scores[2]), None]
    assert second[1]["completion_ids"] == first[0]["completion_ids"]
    run = tiny(*ENGINES["trl_grpo"])
    engine = engine_of(run)
    whole = scored(played(engine, run))
    shorter = whole | {name: whole[name][:-1] for name in ("trajectories", "scores")}
    assert engine.train_step(shorter)["grad_norm"] > 0


def test_episode_becomes_a_prompt_and_a_completion_with_masked_foreign_tokens() -> None:
    batch = collate(*rollouts([1]), pad_id=0)
    ((one,),) = groups_of(batch, 1, 1)
    end = int(batch.lengths[0])
    assert one["prompt_ids"] + one["completion_ids"] == batch.ids[0, :end].tolist()
    masked = [False] * len(one["prompt_ids"]) + [bool(mine) for mine in one["env_mask"]]
    assert masked == batch.action_mask[0, :end].tolist()
    assert one["env_mask"][0] == 1 and len(one["logprobs"]) == len(one["completion_ids"])
