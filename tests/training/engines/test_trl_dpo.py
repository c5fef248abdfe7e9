"""`trl_dpo`: TRL's trainer takes the same step as `torch_dpo`, on rollouts of the initial policy."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.engines.torch_dpo import Pair
from rc1_lib.training.engines.trl_dpo import inputs_of
from rc1_lib.training.updates.batch import collate
from rc1_lib.training.updates.metrics import ParityError
from tests.training.grpo.toys import rollouts
from tests.training.test_episode_engines import engine_of, played, same, scored
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]
ONE_STEP = ("training.update.minibatches=1", "kl_coef=0.1", "lr=0.001")


def test_trl_dpo_and_torch_dpo_take_the_same_step(tiny: Tiny) -> None:
    """At temperature 1, as TRL supports no other, and on a policy that differs from the initial one."""
    no_parity = ("training.parity.mean=100", "training.parity.far_share=1")  # torch_dpo expects its own rollouts
    warm = ("training.rollout.temperature=1.0", *no_parity, *ONE_STEP)
    theirs, ours = (engine_of(tiny(*ENGINES[name], *warm)) for name in ("trl_dpo", "torch_dpo"))
    batch = scored(played(theirs, tiny(*ENGINES["trl_dpo"], *warm)))
    theirs.train_step(batch)
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    seen, expected = theirs.train_step(batch), ours.train_step(batch)
    assert expected["pairs/differ"] == seen["pairs/differ"] > 0
    assert abs(expected["rewards/margins"]) > 1e-3
    for name in ("loss", "rewards/margins", "rewards/accuracies"):
        assert seen[name] == pytest.approx(expected[name], abs=1e-5), name
    # torch_dpo's mean includes pairs with equal scores, TRL's does not.
    assert seen["grad_norm"] * seen["pairs/differ"] == pytest.approx(expected["grad_norm"], rel=1e-4)


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


def test_equal_scores_change_nothing(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    batch = played(engine, run)
    before = engine.policy.adapter_state()
    metrics = engine.train_step(batch | {"scores": [0.5] * len(batch["scores"])})
    assert (metrics["pairs/differ"], metrics["loss"], metrics["update/steps"]) == (0, 0, 0)
    assert same(engine.policy.adapter_state(), before)


def test_step_with_one_rollout_per_prompt_is_rejected(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    engine = engine_of(run)
    batch = played(engine, run)
    singles = batch | {name: batch[name][::4] for name in ("trajectories", "scores")}
    with pytest.raises(RC1Error, match=r" prompts .*training\.update\.group_size"):
        engine.train_step(singles)


def test_user_and_tool_tokens_are_masked() -> None:
    batch = collate(*rollouts([2]), pad_id=0)
    inputs = inputs_of(batch, Pair(1, 0, True))
    longest = int(batch.lengths.max())
    assert inputs["input_ids"].tolist() == batch.ids[[1, 0], :longest].tolist()
    assert inputs["completion_mask"].bool().tolist() == batch.action_mask[[1, 0], :longest].tolist()
    assert inputs["attention_mask"].sum(dim=1).tolist() == batch.lengths[[1, 0]].tolist()
