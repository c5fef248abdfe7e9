"""`trl_dpo`: pairs of the initial policy's rollouts, and the step that TRL's trainer takes on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from rc1_lib.run import Run
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.engines.trl_dpo import Pair, pairs_of
from rc1_lib.training.updates.batch import collate
from rc1_lib.training.updates.forward import policy_logprobs, reference_logprobs
from rc1_lib.training.updates.metrics import ParityError
from tests.training.test_episode_engines import engine_of, played, same, scored
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]
ONE_STEP = ("training.update.minibatches=1", "kl_coef=0.1", "lr=0.001")


def test_best_and_worst_of_every_group_are_a_pair() -> None:
    scores = torch.tensor([0.1, 0.9, 0.5, 0.7, 0.7, 0.2, 0.2, 0.8])
    groups = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])
    assert pairs_of(scores, groups) == [Pair(1, 0, True), Pair(3, 4, False), Pair(7, 6, True)]


def test_loss_and_margins_are_those_of_the_paper(tiny: Tiny) -> None:
    """At temperature 1, as TRL supports no other, and on a policy that differs from the initial one."""
    run = tiny(*ENGINES["trl_dpo"], "training.rollout.temperature=1.0", *ONE_STEP)
    engine = engine_of(run)
    batch = scored(played(engine, run))
    engine.train_step(batch)
    episodes = collate(batch["trajectories"], batch["scores"], pad_id=0)
    now_BT = policy_logprobs(engine.policy, episodes, range(len(episodes)), micro_tokens=1000, temperature=1.0)
    ref_BT = reference_logprobs(engine.policy, episodes, micro_tokens=1000, temperature=1.0)
    gained_B = (now_BT - ref_BT).sum(dim=1)
    pairs = [pair for pair in pairs_of(episodes.scores, episodes.groups) if pair.differ]
    margins = torch.stack([0.1 * (gained_B[pair.chosen] - gained_B[pair.rejected]) for pair in pairs]).detach()
    seen = engine.train_step(batch)
    assert abs(float(margins.mean())) > 1e-3
    assert seen["rewards/margins"] == pytest.approx(float(margins.mean()), abs=1e-5)
    assert seen["loss"] == pytest.approx(float(-logsigmoid(margins).mean()), abs=1e-5)


def test_a_step_with_one_pair_leaves_the_minibatches_of_the_next_as_they_were(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"], "training.update.minibatches=2")
    engine = engine_of(run)
    batch = scored(played(engine, run))
    one = batch | {"scores": [1.0, *[0.0] * (len(batch["scores"]) - 1)]}
    assert [engine.train_step(each)["update/steps"] for each in (batch, one, batch)] == [2.0, 1.0, 2.0]


def test_rollouts_come_from_the_initial_policy_during_training(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    first = scored(played(engine, run))
    metrics = engine.train_step(first)
    assert metrics["objective/kl_k3"] == pytest.approx(0.0, abs=1e-6) and metrics["ratio"] == pytest.approx(1.0)
    assert played(engine, run)["trajectories"] == first["trajectories"], "rollouts of the trained policy"
    assert engine.train_step(first)["objective/kl_k3"] > 1e-4


def test_rollouts_of_the_trained_policy_stop_the_training(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    batch = scored(played(engine, run))
    engine.train_step(batch)
    rows, keys = batch["rows"] * 2, [f"{place}" for place in range(2 * len(batch["rows"]))]
    own = engine.play(rows, keys, temperature=engine.temperature, seed=5, iteration=0)
    with pytest.raises(ParityError, match=r"^step 1: .* 0\.001, training\.parity\.mean\)"):
        engine.train_step(scored(batch | {"trajectories": own, "scores": [0.0] * len(own)}))


def test_non_finite_gradient_is_rejected_before_the_step(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    batch = scored(played(engine, run))
    before = engine.policy.adapter_state()

    def spoil(gradient: Any) -> Any:
        return gradient * float("nan")

    handle = engine.policy.adapter_parameters()[-1].register_hook(spoil)
    with pytest.raises(DivergedError, match=r"\bnorm\b.* nan, "):
        engine.train_step(batch)
    handle.remove()
    assert same(engine.policy.adapter_state(), before)
