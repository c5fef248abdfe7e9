"""Every engine that learns from episodes, with a tiny Qwen3 in the real environment."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor

import rc1_lib.training.rollout.roll_out as roll_out_module
from rc1_lib.config.step_metrics import OF_ENGINES
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.api import Setup, make_engine
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.export.trained_policy import merged_weights
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.rollout.sampling_weights import merged
from rc1_lib.training.updates.metrics import ParityError, check_parity, larger_distance
from tests.shares import share
from tests.training.tiny_world import ENGINES, tiny_run

Tiny = Callable[..., Run]
First = Callable[[str], dict[str, Any]]

every_engine = pytest.mark.parametrize("name", sorted(ENGINES))
an_engine_of_each_kind = pytest.mark.parametrize("name", share(sorted(ENGINES), "torch_ppo", "trl_dpo"))
"""One that samples with the current policy and one that samples with the initial one; one of RC1's and one of TRL's."""
own_episodes = pytest.mark.parametrize("name", share(sorted({*ENGINES} - {"trl_dpo"}), "torch_ppo"))
"""Engines that sample with the policy that they train."""


def engine_of(run: Run, seed: int = 5) -> PolicyEngine:
    engine = make_engine(run.config.training.engine)
    assert isinstance(engine, PolicyEngine)
    engine.setup(Setup.of_run(run.config, str(run.workspace.path(run.config.base_model)), seed))
    return engine


def played(engine: PolicyEngine, run: Run, step: int = 0) -> dict[str, Any]:
    """A batch and its episodes."""
    prepared = prepare(run)
    batch = Curriculum(prepared.selection.train, run.config.priority_sampling, run.config.prompts, 5).next()
    batch["step"] = step
    strategy = prepared.strategy(5)
    strategy.attach_engine(engine)
    strategy.on_batch(batch)
    return batch


def scored(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch with another score for each episode, so that there is something to learn, whatever was sampled."""
    return batch | {"scores": [0.1 * place for place in range(len(batch["scores"]))]}


@pytest.fixture(scope="module")
def first(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> First:
    """Returns the first batch of an engine's run, with scores that differ. Each is played once."""
    root = tmp_path_factory.mktemp("first") / "workspace"
    shutil.copytree(tiny_workspace, root)

    @cache
    def batch(name: str) -> dict[str, Any]:
        run = tiny_run(root, *ENGINES[name])
        return played(engine_of(run), run)

    return lambda name: scored(batch(name))


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(value, right[name]) for name, value in left.items())


@every_engine
def test_step_reports_the_specified_metrics(tiny: Tiny, name: str) -> None:
    run = tiny(*ENGINES[name])
    engine = engine_of(run)
    batch = played(engine, run)
    metrics = engine.train_step(batch)
    assert metrics.keys() == OF_ENGINES[name], "early stop and collapse accept the metrics of this list"
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["lr"] == run.config.lr


@an_engine_of_each_kind
def test_sampling_and_training_log_probabilities_agree(tiny: Tiny, name: str) -> None:
    run = tiny(*ENGINES[name])
    engine = engine_of(run)
    for step in range(2):
        assert engine.train_step(played(engine, run, step))["policy/sampling_gap"] < 1e-5


@contextmanager
def one_update_late(engine: PolicyEngine, stale: dict[str, Tensor], model: Any) -> Iterator[None]:
    """Merged weights of a copy that was not rewritten after the last update."""
    fresh = engine.policy.adapter_state()
    engine.policy.load_adapter_state(stale)
    with merged(model):
        yield
    engine.policy.load_adapter_state(fresh)


@own_episodes
def test_sampling_weights_that_are_one_update_old_stop_the_training(
    tiny: Tiny, first: First, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = tiny(*ENGINES[name])
    engine = engine_of(run)
    engine.train_step(first(name))
    before = engine.policy.adapter_state()
    engine.train_step(scored(played(engine, run, 1)))
    monkeypatch.setattr(roll_out_module, "merged", lambda model: one_update_late(engine, before, model))
    batch = played(engine, run, 2)
    monkeypatch.undo()
    with pytest.raises(ParityError, match=r"^step 3: .* 0\.001, training\.parity\.mean\)"):
        engine.train_step(batch)


@an_engine_of_each_kind
def test_restored_engine_state_continues_bit_for_bit(tiny: Tiny, first: First, name: str) -> None:
    run = tiny(*ENGINES[name])
    one, other = engine_of(run), engine_of(run)
    one.train_step(first(name))
    # A copy, as a checkpoint is: the state holds references to moments that the optimizer changes.
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for engine in (one, other):
        engine.train_step(played(engine, run, 1))
    assert same(one.policy.adapter_state(), other.policy.adapter_state())
    assert one.state_dict()["kl"] == other.state_dict()["kl"]


@own_episodes
def test_in_bf16_each_step_of_an_update_sees_the_steps_before_it(tiny: Tiny, name: str) -> None:
    run = tiny(
        *ENGINES[name], "training.precision=bf16", "lr=0.05", "training.update.minibatches=4",
        "training.update.kl_stop=1e9", "training.parity.mean=1", "training.parity.far_share=1",
    )  # fmt: skip
    engine = engine_of(run)
    metrics = engine.train_step(scored(played(engine, run)))
    assert metrics["policy/approxkl_avg"] > 0.01, "later steps used the adapter from before the update"


def test_state_of_another_seed_is_rejected(tiny: Tiny) -> None:
    run = tiny()
    with pytest.raises(RC1Error, match=r"seed 5\b.* 6\b"):
        engine_of(run, 6).load_state_dict(engine_of(run, 5).state_dict())


@an_engine_of_each_kind
def test_a_base_in_4_bits_samples_what_it_learns_and_its_merged_weights_say_the_same(tiny: Tiny, name: str) -> None:
    run = tiny(*ENGINES[name], "finetune.method=qlora", "training.update.minibatches=1")
    engine = engine_of(run)
    engine.train_step(played(engine, run))
    assert engine.train_step(played(engine, run, 1))["policy/sampling_gap"] < 1e-4
    layer = next(one for one in engine.policy.causal.modules() if isinstance(one, LoraLayer))
    states = torch.randn(3, layer.in_features, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(layer(states), states @ merged_weights(layer).T, rtol=1e-3, atol=1e-4)


def test_parity_fails_on_a_few_distant_tokens_and_on_nan_even_if_the_mean_is_small(tiny: Tiny) -> None:
    bounds, close = tiny().config.training.parity, {"policy/sampling_gap": 1e-6, "policy/sampling_far": 0.0}
    check_parity(close, bounds, 0)
    for found in ({"policy/sampling_far": 0.002}, {"policy/sampling_gap": math.nan}):
        with pytest.raises(ParityError):
            check_parity(close | found, bounds, 0)
    far = close | {"policy/sampling_far": 0.002}
    assert larger_distance(close, far) == larger_distance(far, close) == far
