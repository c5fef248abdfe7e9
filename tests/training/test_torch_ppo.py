"""The engine on a real tiny Qwen3 in the real dialogue world."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.registry import make_engine
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.strategies.ppo import PPO

Tiny = Callable[..., Run]

NAMES = (
    "loss", "kl", "ratio", "lr", "objective/kl", "objective/entropy", "objective/scores", "objective/non_score_reward",
    "policy/approxkl_avg", "policy/clipfrac_avg", "loss/policy_avg", "loss/value_avg", "val/ratio", "val/ratio_var",
    "val/clipfrac_avg", "critic/vf_explained_var", "response_length/mean", "grad_norm", "policy/sampling_gap",
)  # fmt: skip


def engine_of(run: Run, seed: int = 5) -> TorchPPO:
    engine = TorchPPO()
    base = str(run.workspace.path(run.config.base_model))
    engine.setup(EpisodeSetup(run.config, base, seed))
    return engine


def played(engine: TorchPPO, run: Run, step: int = 0) -> dict[str, Any]:
    """A batch with its episodes."""
    selection = prepare(run).selection
    batch = Curriculum(selection.train, run.config.priority_sampling, run.config.batch_size, 5).next()
    batch["step"] = step
    strategy = PPO()
    strategy.attach_engine(engine)
    strategy.on_batch(batch)
    return batch


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(value, right[name]) for name, value in left.items())


def test_a_step_measures_what_the_specification_and_other_trainers_name(tiny: Tiny) -> None:
    run = tiny()
    engine = engine_of(run)
    metrics = engine.train_step(played(engine, run))
    assert set(NAMES) <= metrics.keys()
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["lr"] == run.config.lr and metrics["lr/value"] == run.config.training.ppo.value_lr


def test_sampling_and_learning_agree_on_every_probability(tiny: Tiny) -> None:
    run = tiny("training.ppo.value_warm_up=0")
    engine = engine_of(run)
    for step in range(2):
        assert engine.train_step(played(engine, run, step))["policy/sampling_gap"] < 1e-5


def test_while_the_value_head_warms_up_the_adapter_stays(tiny: Tiny) -> None:
    run = tiny()
    engine = engine_of(run)
    adapter, head = engine.policy.adapter_state(), engine.state_dict()["value_head"]
    engine.train_step(played(engine, run, 0))
    assert same(engine.policy.adapter_state(), adapter)
    assert not same(engine.state_dict()["value_head"], head)
    engine.train_step(played(engine, run, 1))
    assert not same(engine.policy.adapter_state(), adapter)


def test_the_order_of_the_episodes_changes_no_bit_of_the_update(tiny: Tiny) -> None:
    run = tiny("training.ppo.value_warm_up=0")
    one, other = engine_of(run), engine_of(run)
    batch = played(one, run)
    order = random.Random(2).sample(range(8), 8)
    assert order != sorted(order)
    shuffled = {**batch, **{key: [batch[key][place] for place in order] for key in ("trajectories", "scores")}}
    assert one.train_step(batch) == other.train_step(shuffled)
    assert same(one.policy.adapter_state(), other.policy.adapter_state())


def test_the_size_of_a_micro_batch_is_a_matter_of_memory_only(tiny: Tiny) -> None:
    # One minibatch, so that every figure is of the gradients before a step: a step of Adam blows rounding up.
    wide, narrow = (
        tiny("training.ppo.value_warm_up=0", "training.ppo.minibatches=1", f"training.ppo.micro_tokens={tokens}")
        for tokens in (100_000, 1)
    )
    one, other = engine_of(wide), engine_of(narrow)
    batch = played(one, wide)
    left, right = one.train_step(dict(batch)), other.train_step(dict(batch))
    assert left.keys() == right.keys() and left["grad_norm"] > 1e-3
    assert all(right[name] == pytest.approx(value, abs=1e-5) for name, value in left.items())


def test_a_state_put_back_goes_on_bit_for_bit(tiny: Tiny) -> None:
    run = tiny("training.ppo.value_warm_up=0")
    one, other = engine_of(run), engine_of(run)
    one.train_step(played(one, run))
    # A copy, as a checkpoint is one: torch's optimizers hand out the moments that they go on changing.
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for engine in (one, other):
        engine.train_step(played(engine, run, 1))
    assert same(one.policy.adapter_state(), other.policy.adapter_state())
    assert one.state_dict()["kl"] == other.state_dict()["kl"]


def test_the_state_of_another_seed_is_refused(tiny: Tiny) -> None:
    run = tiny()
    with pytest.raises(RC1Error, match="the checkpoint is of seed 5, this run of 6; give its seed"):
        engine_of(run, 6).load_state_dict(engine_of(run, 5).state_dict())


def test_the_state_of_another_adapter_is_refused(tiny: Tiny) -> None:
    state = engine_of(tiny()).state_dict()
    with pytest.raises(RC1Error, match="the adapter's weights do not fit the model"):
        engine_of(tiny("training.adapter.rank=2")).load_state_dict(state)


def test_evaluating_changes_nothing(tiny: Tiny) -> None:
    run = tiny()
    engine = engine_of(run)
    batch = played(engine, run)
    before = engine.policy.adapter_state()
    metrics = engine.eval_step(batch)
    assert metrics["tokens"] == sum(each.own_tokens for each in batch["trajectories"])
    assert same(engine.policy.adapter_state(), before)
    assert all(parameter.grad is None for parameter in engine.policy.parameters())


def test_the_price_of_the_divergence_moves_only_where_it_is_asked_to(tiny: Tiny) -> None:
    for override, moves in (("training.ppo.adaptive_kl=true", True), ("training.ppo.adaptive_kl=false", False)):
        run = tiny(override)
        engine = engine_of(run)
        first = engine.train_step(played(engine, run, 0))["objective/kl_coef"]
        second = engine.train_step(played(engine, run, 1))["objective/kl_coef"]
        assert first == run.config.kl_coef
        assert (second != first) is moves


def test_four_bit_weights_learn_on_a_cpu(tiny: Tiny) -> None:
    import bitsandbytes

    run = tiny("finetune.method=qlora", "training.ppo.value_warm_up=0")
    engine = engine_of(run)
    packed = [m for m in engine.policy.modules() if isinstance(m, bitsandbytes.nn.Linear4bit)]
    assert len(packed) == 7 * 2
    weights = [layer.weight.detach().clone() for layer in packed]
    before = engine.policy.adapter_state()
    metrics = engine.train_step(played(engine, run))
    assert math.isfinite(metrics["loss"]) and metrics["policy/sampling_gap"] < 1e-2
    assert not same(engine.policy.adapter_state(), before)
    assert all(torch.equal(layer.weight, old) for layer, old in zip(packed, weights, strict=True))


def test_the_old_name_gives_this_engine_and_says_so() -> None:
    told: list[str] = []
    assert isinstance(make_engine("trl_ppo", EpisodeSetup, told.append), TorchPPO)
    assert len(told) == 1 and "torch_ppo" in told[0]


def test_a_loss_scaler_is_part_of_the_state_and_comes_back(tiny: Tiny) -> None:
    """A CPU computes in fp32 and needs none, so both engines are given one as an accelerator's would have it."""
    engines = [engine_of(tiny()), engine_of(tiny())]
    for engine, scale in zip(engines, (32.0, 512.0), strict=True):
        engine._scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    saved, other = engines
    other.load_state_dict(saved.state_dict())
    assert other._scaler is not None and other._scaler.get_scale() == 32.0
