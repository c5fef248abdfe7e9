"""Settings of supervised engines that only files of rows may use: full fine-tuning, dropout, any precision.

`test_demonstrations.py` tests what rows and runs share.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from rc1_lib.config.engines import ENGINES, LearnsFrom, names_of
from rc1_lib.training.api import make_engine
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.engines.pure_pt_sft import PurePtSFT
from rc1_lib.training.train_config import load_train_config
from rc1_lib.training.train_local import setup_of
from rc1_lib.training.updates.batch import Demonstration
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.test_episode_engines import same
from tests.training.tiny import write_base

ROWS = [
    Demonstration("0", (5, 6, 7, 8, 9, 10, 2), (False, False, True, True, True, True, True)),
    Demonstration("1", (11, 12, 13), (False, True, True)),
    Demonstration("2", (14, 15, 16, 17), (False, True, True, True)),
]
BATCH = {"demonstrations": ROWS}
CPU = (
    "run.device_pref=[cpu]", "run.mixed_precision=fp32", "model.lora.dropout=0.0", "engine.lr=0.01",
    "data.max_length=7", "run.gradient_accumulation=3",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"), hidden=64)


Make = Callable[..., PurePtSFT]


@pytest.fixture(params=names_of(ENGINES, LearnsFrom.DEMONSTRATIONS))
def make(request: pytest.FixtureRequest) -> Make:
    """Makes each supervised engine with the shipped configuration: `make(base, "model.lora.r=4")`."""
    return lambda base, *overrides: engine_of(request.param, base, *overrides)


def engine_of(name: str, base: Path, *overrides: str) -> PurePtSFT:
    settings = [f"model.base={base}", f"engine.name={name}", *CPU, *overrides]
    config = load_train_config(PROJECT_ROOT / "configs/train_local.yaml", settings)
    engine = make_engine(name)
    assert isinstance(engine, PurePtSFT)
    engine.setup(setup_of(config, config.model))
    return engine


def plain_loss(base: Path) -> float:
    """Mean negative log-likelihood over own tokens, row by row, without padding."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    losses = []
    for row in ROWS:
        logprobs = model(torch.tensor([row.ids])).logits[0].log_softmax(-1)
        losses += [-logprobs[at - 1, row.ids[at]] for at, own in enumerate(row.action_mask) if own]
    return float(torch.stack(losses).mean().detach())


def test_loss_is_the_mean_over_own_tokens_for_any_batching(make: Make, base: Path) -> None:
    expected = plain_loss(base)
    for rows, passes in ((1, 3), (3, 1)):
        engine = make(base, f"data.batch_size={rows}", f"run.gradient_accumulation={passes}")
        evaluated = engine.eval_step(BATCH)
        assert evaluated["loss"] == pytest.approx(expected, abs=1e-5) and evaluated["tokens"] == 5 + 2 + 3
        assert engine.train_step(BATCH)["loss"] == pytest.approx(expected, abs=1e-5)


def test_dropout_is_active_in_training_and_off_in_evaluation(make: Make, base: Path) -> None:
    engine = make(base, "model.lora.dropout=0.5")
    for _ in range(2):  # a new adapter is zero, so that dropout has no effect
        engine.train_step(BATCH)
    state, losses = deepcopy(engine.state_dict()), []
    for seed in (1, 1, 2):
        engine.load_state_dict(deepcopy(state))
        engine._minibatch_rng.manual_seed(seed)
        torch.manual_seed(seed)
        losses.append(engine.train_step(BATCH)["loss"])
    assert losses[0] == losses[1] != losses[2]
    assert engine.eval_step(BATCH) == engine.eval_step(BATCH)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_qlora_trains_on_a_cpu_and_keeps_the_base_in_four_bits(make: Make, base: Path, precision: str) -> None:
    import bitsandbytes

    engine = make(base, "model.quantization=nf4", f"run.mixed_precision={precision}")
    layers = [module for module in engine.policy.modules() if isinstance(module, bitsandbytes.nn.Linear4bit)]
    assert len(layers) == 7 * 2
    packed = [layer.weight.data.clone() for layer in layers]
    losses = [engine.train_step(BATCH)["loss"] for _ in range(8)]
    assert losses[-1] < losses[0] - 0.1
    assert all(torch.equal(layer.weight.data, old) for layer, old in zip(layers, packed, strict=True))


def test_full_fine_tuning_trains_all_weights_and_resumes_bit_for_bit(make: Make, base: Path) -> None:
    engine, other = make(base, "model.lora.enable=false"), make(base, "model.lora.enable=false")
    before = deepcopy(engine.policy.adapter_state())
    engine.train_step(BATCH)
    assert set(engine.state_dict()) == {"model", "optimizer", "dealer"}
    assert all(not torch.equal(value, before[name]) for name, value in engine.policy.adapter_state().items())
    other.load_state_dict(deepcopy(engine.state_dict()))  # a checkpoint's tensors are copies
    assert engine.train_step(BATCH) == other.train_step(BATCH)
    assert same(engine.policy.adapter_state(), other.policy.adapter_state())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_non_finite_gradient_is_rejected_before_the_step(make: Make, base: Path, bad: float) -> None:
    engine = make(base)
    before = engine.policy.adapter_state()
    engine.policy.adapter_parameters()[-1].register_hook(lambda gradient: gradient.fill_(bad))
    with pytest.raises(DivergedError, match=r"\bnorm\b.* (nan|inf), "):
        engine.train_step(BATCH)
    assert same(engine.policy.adapter_state(), before)
