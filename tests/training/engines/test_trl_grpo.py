"""What `trl_grpo` alone does: TRL's loss says what RC1's own does, on the same takes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from rc1_lib.config.updates import GRPO
from rc1_lib.run import Run
from rc1_lib.training.episode_engine import EpisodeEngine
from rc1_lib.training.grpo.advantages import group_advantages
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.own_tokens import own_tokens
from rc1_lib.training.updates.reading import Manner, logprobs_of, read_episodes
from tests.shares import share
from tests.training.test_episode_engines import engine_of, played
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]


LATE = ("training.parity.mean=100", "training.parity.far_share=1")
"""Lets takes be learned from that an earlier policy played."""
TRLS = ("importance_sampling_level", "use_bias_correction_kl")
"""Settings that `torch_grpo` has not."""


def _known(engine: str, field: str) -> bool:
    return engine == "trl_grpo" or field not in TRLS


def _key(engine: str, field: str) -> str:
    """Where an engine's setting is: `torch_grpo` shares most of its own with others."""
    if engine == "trl_grpo":
        return f"training.trl_grpo.{field}"
    return f"training.grpo.{field}" if field in GRPO.model_fields else f"training.update.{field}"


def both(tiny: Tiny, **section: Any) -> tuple[EpisodeEngine, EpisodeEngine, Run]:
    """TRL's and RC1's own, with the same settings of their sections and one step of the optimizer an update."""
    found, runs = [], []
    of_trl = {"use_bias_correction_kl": False} | section
    for name, chosen in (("trl_grpo", of_trl), ("torch_grpo", section)):
        chosen = {"minibatches": 1, "adaptive_kl": "false"} | chosen
        settings = [f"{_key(name, field)}={value}" for field, value in chosen.items() if _known(name, field)]
        runs.append(tiny(*ENGINES[name], "kl_coef=0.3", "clip=0.02", *LATE, *settings))
        found.append(engine_of(runs[-1]))
    return found[0], found[1], runs[0]


def scored(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch with scores that differ within every group."""
    return batch | {"scores": [0.1 * (place * 7 % 5) for place in range(len(batch["scores"]))]}


def taught(engine: EpisodeEngine, batch: dict[str, Any]) -> tuple[dict[str, float], list[Tensor]]:
    """The metrics of an update and the gradients that its first step of the optimizer takes."""
    seen: list[Tensor] = []
    hook = engine.optimizer.register_step_pre_hook(
        lambda optimizer, *_: seen.extend(each.grad.clone() for each in optimizer.param_groups[0]["params"])
    )
    metrics = engine.train_step(dict(batch))
    hook.remove()
    return metrics, seen


def late(tiny: Tiny, **section: Any) -> tuple[EpisodeEngine, EpisodeEngine, dict[str, Any]]:
    """Both after the same step of TRL's, which has moved them away from start and takes, and these takes."""
    theirs, ours, run = both(tiny, clip_high=0.03, micro_tokens=600, **section)
    batch = scored(played(theirs, run))
    theirs.train_step(dict(batch))
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    return theirs, ours, batch


@pytest.mark.parametrize("loss_type", share(["dapo", "grpo", "dr_grpo"], "dapo"))
def test_trls_loss_and_ours_have_the_same_gradients(tiny: Tiny, loss_type: str) -> None:
    plain = {"loss_type": loss_type, "entropy_coef": 0.01}
    theirs, ours, batch = late(tiny, **plain)
    (seen, of_trl), (expected, own) = taught(theirs, batch), taught(ours, batch)
    assert expected["policy/clipfrac_avg"] > 0.05 and expected["loss/kl_avg"] > 1e-4, "the case is to reach both"
    assert max(float(each.abs().max()) for each in own) > 1e-3
    torch.testing.assert_close(of_trl, own, atol=1e-6, rtol=1e-4)
    assert seen == {name: pytest.approx(value, abs=1e-5) for name, value in expected.items()}


def by_the_papers(engine: EpisodeEngine, batch: EpisodeBatch, *, sequence: bool, corrected: bool) -> Tensor:
    """The loss over all takes, a token at a time: GSPO's where `sequence`, the KL weighed where `corrected`."""
    manner = Manner(100_000, engine.temperature)
    ref_BT = read_episodes(engine.policy, batch, manner).ref_logprobs
    advantages_B = group_advantages(batch.scores, batch.groups, "group").advantages
    losses = []
    for row in range(len(batch)):
        own = own_tokens(batch, [row])
        now_N, ref_N = logprobs_of(engine.policy, batch, own, engine.temperature), own.of(ref_BT)
        log_ratio_N = now_N - own.of(batch.old_logprobs)
        ratio_N = (log_ratio_N.mean().expand_as(now_N) if sequence else log_ratio_N).exp()
        gain_N = torch.minimum(ratio_N * advantages_B[row], ratio_N.clamp(0.98, 1.03) * advantages_B[row])
        kl_N = (ref_N - now_N).exp() - (ref_N - now_N) - 1
        losses.append((0.3 * kl_N * (ratio_N if corrected else 1) - gain_N).mean())
    return torch.stack(losses).mean()


@pytest.mark.parametrize(
    ("level", "corrected"), share([("token", True), ("sequence", True), ("sequence", False)], ("sequence", True))
)
def test_what_trl_alone_has_is_what_its_papers_say(tiny: Tiny, level: str, corrected: bool) -> None:
    section = {"loss_type": "grpo", "importance_sampling_level": level, "use_bias_correction_kl": corrected}
    engine, _, batch = late(tiny, **section)
    collated = engine._collated(batch)
    loss = by_the_papers(engine, collated, sequence=level == "sequence", corrected=corrected)
    expected = torch.autograd.grad(loss, engine.optimizer.param_groups[0]["params"])
    metrics, of_trl = taught(engine, batch)
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-6)
    assert metrics["policy/clipfrac_avg"] > 0.05
    assert metrics["loss/policy_avg"] + 0.3 * metrics["loss/kl_avg"] == pytest.approx(metrics["loss"], abs=1e-6)
    torch.testing.assert_close(of_trl, list(expected), atol=1e-6, rtol=1e-4)


def test_what_the_policy_would_never_say_is_no_part_of_the_loss_where_the_world_says_it(tiny: Tiny) -> None:
    """TRL weighs it by 0, which is no number where its KL is infinite."""
    run = tiny(*ENGINES["trl_grpo"], "kl_coef=0.3")
    engine = engine_of(run)
    with torch.no_grad():
        engine.policy.causal.get_decoder().norm.weight.mul_(100)
    batch = scored(played(engine, run))
    collated = engine._collated(batch)
    log_p_BTV = engine.policy.logits(engine.policy.hidden(collated.ids[:, :-1])).log_softmax(-1)
    at_BT = log_p_BTV.gather(2, collated.ids[:, 1:, None])[..., 0]
    behind_BT = collated.own.cumsum(1)[:, 1:] > 0
    assert at_BT[behind_BT & ~collated.own[:, 1:]].min() < -100, "the case is to reach it"
    assert math.isfinite(engine.train_step(batch)["grad_norm"])
