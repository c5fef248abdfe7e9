"""Every engine that learns from episodes, with a tiny Qwen3 in the real environment."""

from __future__ import annotations

import copy
import math
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rc1_lib.training.rollout.roll_out as roll_out_module
from rc1_lib.config.step_metrics import OF_ENGINES
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.api import Setup
from rc1_lib.training.base_model import base_config
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.engines.torch_grpo import TorchGRPO
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.registry import make_engine
from rc1_lib.training.rollout.sampling_weights import SamplingCopy, merged
from rc1_lib.training.updates.metrics import ParityError, check_parity, larger_distance
from rc1_lib.training.usable import least_memory
from tests.shares import share
from tests.training.tiny_world import ENGINES, tiny_run

Tiny = Callable[..., Run]
First = Callable[[str], dict[str, Any]]

NAMES = (
    "loss", "kl", "ratio", "lr", "objective/kl", "objective/entropy", "objective/scores", "objective/non_score_reward",
    "response_length/mean", "grad_norm", "policy/sampling_gap", "policy/sampling_far",
)  # fmt: skip
OF_RATIOS = {"policy/approxkl_avg", "policy/clipfrac_avg", "loss/policy_avg", "val/ratio", "val/ratio_var"}
OWN_NAMES = {
    "torch_ppo": OF_RATIOS | {"loss/value_avg", "val/clipfrac_avg", "critic/vf_explained_var", "lr/value"},
    "torch_grpo": OF_RATIOS | {"loss/kl_avg", "frac_reward_zero_std"},
    "trl_dpo": {
        "rewards/margins", "rewards/accuracies", "rewards/chosen", "rewards/rejected", "logps/chosen", "logps/rejected",
        "pairs/differ", "frac_reward_zero_std",
    },
}  # fmt: skip
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
    assert {*NAMES} <= metrics.keys()
    assert OWN_NAMES[name] == set().union(*OWN_NAMES.values()) & metrics.keys()
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


def test_learning_rate_0_changes_no_weight_and_samples_the_same_tokens(tiny: Tiny, first: First) -> None:
    run = tiny(*ENGINES["torch_ppo"])
    engine = engine_of(run)
    engine.train_step(first("torch_ppo"))  # a non-zero adapter, so that merging could leave traces
    for group in engine.optimizer.param_groups:
        group["lr"] = 0.0
    weights = copy.deepcopy(engine.policy.state_dict())
    batch = played(engine, run, 1)
    assert engine.train_step(dict(batch))["grad_norm"] > 0
    assert played(engine, run, 1)["trajectories"] == batch["trajectories"]
    assert same(engine.policy.state_dict(), weights)


@an_engine_of_each_kind
def test_gradients_are_clipped_and_the_scheduled_rate_is_used(tiny: Tiny, first: First, name: str) -> None:
    """The schedule's callback sets the optimizer's rate; at 0 no weight moves."""
    run = tiny(*ENGINES[name], "training.update.max_grad_norm=0.0001")
    engine = engine_of(run)
    batch = first(name)
    norms = list[float]()

    def record_norm(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        taken = [each.grad for group in optimizer.param_groups for each in group["params"]]
        norms.append(float(torch.stack([grad.norm() for grad in taken if grad is not None]).norm()))

    engine.optimizer.register_step_pre_hook(record_norm)
    before = engine.policy.adapter_state()
    for rate in (0.0, 0.001):
        for group in engine.optimizer.param_groups:
            group["lr"] = rate
        metrics = engine.train_step(dict(batch))
        assert metrics["lr"] == rate and metrics["grad_norm"] > 0.0001
        assert same(engine.policy.adapter_state(), before) is (rate == 0.0)
    assert norms == pytest.approx([0.0001] * len(norms), rel=1e-2) and len(norms) >= 2 * metrics["update/steps"]


def test_parity_fails_on_a_few_distant_tokens_even_if_the_mean_is_small(tiny: Tiny) -> None:
    close, far = {"policy/sampling_gap": 1e-6, "policy/sampling_far": 0.0}, {"policy/sampling_far": 0.002}
    bounds = tiny().config.training.parity
    check_parity(close, bounds, 0)
    with pytest.raises(ParityError, match=r" 0\.1 .* 0\.20% .*training\.parity\.far_share\)"):
        check_parity(close | far, bounds, 0)
    with pytest.raises(ParityError):
        check_parity(close | {"policy/sampling_gap": math.nan}, bounds, 0)
    assert larger_distance(close, close | far | {"loss": 1.0}) == larger_distance(close | far, close) == close | far
    lost = {"policy/sampling_gap": math.nan}
    for one, other in ((close | lost, close), (close, close | lost)):
        assert math.isnan(larger_distance(one, other)["policy/sampling_gap"])


def test_adapter_stays_during_the_value_warm_up(tiny: Tiny) -> None:
    run = tiny()
    engine = engine_of(run)
    assert isinstance(engine, TorchPPO)
    adapter, head = engine.policy.adapter_state(), engine.state_dict()["value_head"]
    metrics = engine.train_step(played(engine, run, 0))
    assert metrics["lr/value"] == run.config.training.ppo.value_lr
    assert same(engine.policy.adapter_state(), adapter)
    assert not same(engine.state_dict()["value_head"], head)
    engine.train_step(played(engine, run, 1))
    assert not same(engine.policy.adapter_state(), adapter)


@an_engine_of_each_kind
def test_order_of_episodes_does_not_change_the_update(tiny: Tiny, first: First, name: str) -> None:
    run = tiny(*ENGINES[name])
    one, other = engine_of(run), engine_of(run)
    batch = first(name)
    order = random.Random(2).sample(range(8), 8)
    assert order != sorted(order)
    shuffled = {**batch, **{key: [batch[key][place] for place in order] for key in ("trajectories", "scores")}}
    assert one.train_step(batch) == other.train_step(shuffled)
    assert same(one.policy.adapter_state(), other.policy.adapter_state())


@an_engine_of_each_kind
def test_micro_batch_size_does_not_change_the_metrics(tiny: Tiny, first: First, name: str) -> None:
    # One minibatch, so that every metric is from before a step: Adam amplifies rounding.
    key = "training.update"
    wide, narrow = (
        tiny(*ENGINES[name], f"{key}.minibatches=1", f"{key}.micro_tokens={tokens}") for tokens in (100_000, 1)
    )
    one, other = engine_of(wide), engine_of(narrow)
    batch = first(name)
    left, right = one.train_step(dict(batch)), other.train_step(dict(batch))
    assert left.keys() == right.keys() and left["grad_norm"] > 1e-3
    of_rounding = {"rewards/accuracies"}  # the sign of margins, which are 0 until the policy differs from the initial
    compared = left.keys() - of_rounding
    # Sums over an episode have about 100 terms and float32 seven digits.
    assert {each: right[each] for each in compared} == pytest.approx(
        {each: left[each] for each in compared}, rel=1e-4, abs=1e-5
    )


# The others learn as torch_ppo does.
@pytest.mark.parametrize("name", share(["torch_ppo", "trl_dpo"], "torch_ppo"))
def test_gradient_checkpointing_gives_the_same_bits(tiny: Tiny, name: str) -> None:
    kept, again = (tiny(*ENGINES[name], f"training.gradient_checkpointing={way}") for way in (0, 1))
    one, other = engine_of(kept), engine_of(again)
    batch = played(one, kept)
    assert played(other, again)["trajectories"] == batch["trajectories"]
    assert one.train_step(dict(batch)) == other.train_step(dict(batch))
    assert same(one.policy.adapter_state(), other.policy.adapter_state())


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


def test_state_of_another_seed_is_rejected(tiny: Tiny) -> None:
    run = tiny()
    with pytest.raises(RC1Error, match=r"seed 5\b.* 6\b"):
        engine_of(run, 6).load_state_dict(engine_of(run, 5).state_dict())


def test_state_of_another_adapter_shape_is_rejected(tiny: Tiny) -> None:
    state = engine_of(tiny()).state_dict()
    with pytest.raises(RC1Error, match=r"adapter.*lora_A\.weight', \(2, "):
        engine_of(tiny("training.adapter.rank=2")).load_state_dict(state)


@an_engine_of_each_kind
def test_eval_step_changes_no_weight_and_leaves_no_gradient(tiny: Tiny, first: First, name: str) -> None:
    engine = engine_of(tiny(*ENGINES[name]))
    batch = first(name)
    before = engine.policy.adapter_state()
    metrics = engine.eval_step(batch)
    assert metrics["tokens"] == sum(each.action_count for each in batch["trajectories"])
    assert same(engine.policy.adapter_state(), before)
    assert all(parameter.grad is None for parameter in engine.policy.parameters())


def test_kl_coefficient_changes_only_if_adaptive_kl_is_set(tiny: Tiny) -> None:
    for moves in (True, False):
        run = tiny(f"training.update.adaptive_kl={str(moves).lower()}")
        engine = engine_of(run)
        first = engine.train_step(played(engine, run, 0))["objective/kl_coef"]
        second = engine.train_step(played(engine, run, 1))["objective/kl_coef"]
        assert first == run.config.kl_coef
        assert (second != first) is moves


def test_four_bit_base_trains_on_a_cpu(tiny: Tiny) -> None:
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


def test_trl_keeps_the_adapter_in_fp32_on_a_four_bit_base(tiny: Tiny) -> None:
    """TRL advises bf16 for its own loop; then the policy would differ from that of other engines."""
    small = ("finetune.method=qlora", "lr=1e-6")
    theirs, ours = (engine_of(tiny(*ENGINES[name], *small)) for name in ("trl_dpo", "torch_grpo"))
    initial = theirs.policy.adapter_state()
    assert same(initial, ours.policy.adapter_state())
    batch = played(theirs, tiny(*ENGINES["trl_dpo"], *small))
    theirs.train_step(batch | {"scores": [0.1 * place for place in range(len(batch["scores"]))]})
    moved = theirs.policy.adapter_state()
    assert moved.keys() == initial.keys() and {each.dtype for each in moved.values()} == {torch.float32}
    assert 0 < max(float((moved[each] - initial[each]).abs().max()) for each in initial) < 1e-4, "rounded"


COPIED = (
    "finetune.method=qlora", "training.rollout.sampling_copy=bf16", "training.parity.mean=0.02",
    "training.parity.far_share=0.05",
)  # fmt: skip
"""A four-bit base that samples with a 16-bit copy, with the published parity bounds."""


@an_engine_of_each_kind
def test_sampling_copy_stays_within_parity_bounds_and_ratios_start_at_1(tiny: Tiny, name: str) -> None:
    run = tiny(*ENGINES[name], *COPIED, "training.update.minibatches=1")
    engine = engine_of(run)
    engine.train_step(played(engine, run))
    batch = played(engine, run, 1)
    metrics = engine.train_step(batch)
    assert 1e-6 < metrics["policy/sampling_gap"] < 0.02
    if not engine.plays_start:  # else the ratio is that to the initial policy, which is one update old
        assert metrics["ratio"] == pytest.approx(1.0, abs=1e-5)


def test_altered_weight_of_the_sampling_copy_stops_the_training(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny(*ENGINES["torch_ppo"], *COPIED)
    engine = engine_of(run)
    engine.train_step(played(engine, run))
    write = SamplingCopy._write

    def damaged(copied: SamplingCopy) -> None:
        write(copied)
        _, weight = copied._layers[-1]
        weight[3, 5] += 20.0

    monkeypatch.setattr(SamplingCopy, "_write", damaged)
    batch = played(engine, run, 1)
    with pytest.raises(ParityError, match=r"^step 2: .* 0\.02, training\.parity\.mean\)"):
        engine.train_step(batch)


def test_training_at_another_temperature_than_sampling_stops_with_a_copy(tiny: Tiny) -> None:
    run = tiny(*ENGINES["torch_grpo"], *COPIED)
    engine = engine_of(run)
    assert isinstance(engine, TorchGRPO)
    engine._settings = replace(engine._settings, temperature=engine.temperature / 2)
    with pytest.raises(ParityError, match=r"^step 1: .* 0\.02, training\.parity\.mean\)"):
        engine.train_step(played(engine, run))


def assert_rate_0_repeats_the_samples(run: Run) -> None:
    """Assert that steps with learning rate 0 sample the same tokens with the same log-probabilities."""
    engine = engine_of(run)
    engine.train_step(played(engine, run))
    for group in engine.optimizer.param_groups:
        group["lr"] = 0.0
    first = played(engine, run, 1)
    engine.train_step(dict(first))
    assert played(engine, run, 1)["trajectories"] == first["trajectories"]
    engine.close()


def test_learning_rate_0_repeats_the_samples_of_a_copy(tiny: Tiny) -> None:
    assert_rate_0_repeats_the_samples(tiny(*ENGINES["torch_ppo"], *COPIED))


def test_sampling_copy_counts_in_the_memory_estimate(tiny: Tiny) -> None:
    bases = ("finetune.method=qlora", "finetune.method=qlora", "finetune.method=lora")
    wanted = [f"training.rollout.sampling_copy={kind}" for kind in ("bf16", "none", "bf16")]
    counted = [bytes_of_copy(tiny(*both)) for both in zip(bases, wanted, strict=True)]
    layer = 32 * (2 * 32 + 2 * 16) + 3 * 32 * 64
    assert counted == [2 * 2 * layer, 0, 4 * 2 * layer], "an unquantised base is merged in fp32 on a CPU"


def bytes_of_copy(run: Run) -> int:
    setup = Setup.of_run(run.config, str(run.workspace.path("base")), 1)
    return least_memory(setup, base_config(setup.model), torch.device("cpu"))["their copy to sample with"]


def test_old_engine_name_gives_the_new_engine_and_a_message() -> None:
    messages: list[str] = []
    assert isinstance(make_engine("trl_ppo", messages.append), TorchPPO)
    assert len(messages) == 1 and "torch_ppo" in messages[0]


def test_loss_scaler_is_saved_and_restored(tiny: Tiny) -> None:
    """A CPU needs no scaler, so the test gives both engines one."""
    engines = [engine_of(tiny()), engine_of(tiny())]
    for engine, scale in zip(engines, (32.0, 512.0), strict=True):
        engine._scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    saved, other = engines
    other.load_state_dict(saved.state_dict())
    assert other._scaler is not None and other._scaler.get_scale() == 32.0
