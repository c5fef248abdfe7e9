"""Every engine that learns from rows: the loss is the plain one, whatever the micro-batches; QLoRA runs on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from rc1_lib.config.engines import ENGINES, LearnsFrom, names_of
from rc1_lib.errors import ConfigError
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.finite_step import check_finite_gradient
from rc1_lib.training.labelled_rows import Collator, EncodedRow
from rc1_lib.training.registry import make_engine
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.train_config import load_train_config
from rc1_lib.training.train_local import setup_of
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.tiny import write_base

ROWS = [
    EncodedRow((5, 6, 7, 8, 9, 10, 2), 2, {}),
    EncodedRow((11, 12, 13), 1, {}),
    EncodedRow((14, 15, 16, 17), 1, {}),
]
CPU = ("run.device_pref=[cpu]", "run.mixed_precision=fp32", "model.lora.dropout=0.0", "engine.lr=0.01")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"), hidden=64)


Make = Callable[..., Any]


@pytest.fixture(params=names_of(ENGINES, LearnsFrom.ROWS))
def engine(request: pytest.FixtureRequest) -> Make:
    """`engine(base, "data.batch_size=2")` is an engine of each kind in turn, set up by the shipped configuration."""

    def make(base: Path, *overrides: str) -> Any:
        settings = [f"model.base={base}", *CPU, *overrides]
        config = load_train_config(PROJECT_ROOT / "configs/train_local.yaml", settings)
        made = make_engine(request.param, SupervisedSetup)
        made.setup(setup_of(config, config.model))
        return made

    return make


def batch(side: Any = "right") -> dict[str, Any]:
    return Collator(0, side)(ROWS)


def plain_loss(base: Path) -> float:
    """Mean negative log-likelihood over the learned tokens, row by row, without padding."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    lost = []
    for row in ROWS:
        logprobs = model(torch.tensor([row.ids])).logits[0].log_softmax(-1)
        lost += [-logprobs[at - 1, row.ids[at]] for at in range(row.prompt_tokens, len(row.ids))]
    return float(torch.stack(lost).mean().detach())


def test_the_loss_is_the_mean_over_learned_tokens_however_they_are_batched(engine: Make, base: Path) -> None:
    expected = plain_loss(base)
    for rows, side in ((1, "right"), (2, "right"), (3, "left")):
        made = engine(base, f"data.batch_size={rows}")
        assert made.eval_step(batch(side))["loss"] == pytest.approx(expected, abs=1e-5)
        assert made.eval_step(batch(side))["tokens"] == 5 + 2 + 3
        assert made.train_step(batch(side))["loss"] == pytest.approx(expected, abs=1e-5)


def test_the_gradient_does_not_depend_on_the_micro_batches(engine: Make, base: Path) -> None:
    trained = engine(base)
    for _ in range(3):  # a fresh adapter has gradients in one of its two factors only
        trained.train_step(batch())
    found: list[list[torch.Tensor]] = []
    for rows in (1, 2, 3):
        made = engine(base, f"data.batch_size={rows}", "model.gradient_checkpointing=false")
        made.load_state_dict(trained.state_dict())
        made.gradient_hooks.append(lambda given: found.append([p.grad.clone() for p in given]) or {})
        made.train_step(batch())
    for other in found[1:]:
        for gradient, expected in zip(other, found[0], strict=True):
            assert float(expected.abs().max()) > 1e-4
            assert torch.allclose(gradient, expected, rtol=0.0, atol=1e-6)


def test_learning_lowers_the_loss_and_touches_only_the_seven_adapters(engine: Make, base: Path) -> None:
    made = engine(base, "data.batch_size=3")
    frozen = {name: value.clone() for name, value in made.model.named_parameters() if not value.requires_grad}
    losses = [made.train_step(batch())["loss"] for _ in range(8)]
    assert losses[-1] < losses[0] - 0.1
    assert all(torch.equal(value, frozen[name]) for name, value in made.model.named_parameters() if name in frozen)
    adapted = {name.split(".")[-3] for name in made.state_dict()["adapter"]}
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_checkpointing_of_activations_is_really_on_and_changes_nothing(engine: Make, base: Path) -> None:
    on, off = engine(base), engine(base, "model.gradient_checkpointing=false")
    assert on.model.is_activation_checkpointing
    assert not off.model.is_activation_checkpointing
    for made in (on, off):
        assert made.model.config.use_cache is False
        made.train_step(batch())
    for name, value in on.state_dict()["adapter"].items():
        assert torch.allclose(value, off.state_dict()["adapter"][name], atol=1e-6), name


def test_hooks_see_complete_gradients_before_the_step(engine: Make, base: Path) -> None:
    made = engine(base)
    norms = []

    def hook(parameters):
        norms.append(float(torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm()))
        for parameter in parameters:
            parameter.grad = None  # so that the step has nothing to do
        return {"seen": norms[-1]}

    made.gradient_hooks.append(hook)
    before = {name: value.clone() for name, value in made.state_dict()["adapter"].items()}
    assert made.train_step(batch())["seen"] > 0
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict()["adapter"].items())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_qlora_learns_on_a_cpu_and_keeps_the_base_in_four_bits(engine: Make, base: Path, precision: str) -> None:
    import bitsandbytes

    made = engine(base, "model.quantization=nf4", f"run.mixed_precision={precision}", "data.batch_size=3")
    layers = [module for module in made.model.modules() if isinstance(module, bitsandbytes.nn.Linear4bit)]
    assert len(layers) == 7 * 2
    packed = [layer.weight.data.clone() for layer in layers]
    losses = [made.train_step(batch())["loss"] for _ in range(8)]
    assert losses[-1] < losses[0] - 0.1
    assert all(torch.equal(layer.weight.data, old) for layer, old in zip(layers, packed, strict=True))


def test_another_engine_goes_on_from_its_state_bit_for_bit(engine: Make, base: Path) -> None:
    first, second = engine(base), engine(base)
    for _ in range(2):
        first.train_step(batch())
    second.load_state_dict(deepcopy(first.state_dict()))  # a checkpoint's tensors are nobody else's
    assert first.train_step(batch()) == second.train_step(batch())
    ours, theirs = first.state_dict()["adapter"], second.state_dict()["adapter"]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_without_an_adapter_the_whole_model_is_trained_and_saved(engine: Make, base: Path) -> None:
    made = engine(base, "model.lora.enable=false")
    made.train_step(batch())
    state = made.state_dict()
    assert set(state) == {"model", "optimizer"}
    other = engine(base, "model.lora.enable=false")
    other.load_state_dict(state)
    assert other.eval_step(batch())["loss"] == made.eval_step(batch())["loss"]


def test_an_adapter_of_the_head_is_learned(base: Path) -> None:
    """By this engine: TRL's loss reads the head's own weights, so that `trl_sft` is refused with its configuration."""
    settings = [f"model.base={base}", *CPU, "engine.name=pure_pt_sft", "model.lora.target_modules=[q_proj, lm_head]"]
    config = load_train_config(PROJECT_ROOT / "configs/train_local.yaml", settings)
    made = make_engine("pure_pt_sft", SupervisedSetup)
    made.setup(setup_of(config, config.model))
    made.train_step(batch())
    assert any(
        "lm_head" in name and "lora_B" in name and value.any() for name, value in made.state_dict()["adapter"].items()
    )


def test_weights_of_another_adapter_are_refused(engine: Make, base: Path) -> None:
    state = engine(base, "model.lora.r=4").state_dict()
    with pytest.raises(ConfigError, match="the checkpoint's weights are of another model"):
        engine(base).load_state_dict(state)


def test_what_this_machine_or_place_lacks_is_told(engine: Make, base: Path) -> None:
    with pytest.raises(ConfigError, match="use_flash_attention_2: there is none on cpu"):
        engine(base, "model.use_flash_attention_2=true")
    with pytest.raises(ConfigError, match=r"model\.base: '.*nowhere' cannot be loaded"):
        engine(base.parent / "nowhere")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused_before_the_step(engine: Make, base: Path, bad: float) -> None:
    made = engine(base)

    def spoiled(parameters):
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.fill_(bad)
        return {}

    made.gradient_hooks.append(spoiled)
    before = {name: value.clone() for name, value in made.state_dict()["adapter"].items()}
    with pytest.raises(DivergedError, match=r"the gradient's norm is (nan|inf), .*lower the learning rate"):
        made.train_step(batch())
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict()["adapter"].items())


def test_a_loss_that_is_not_finite_is_refused(engine: Make, base: Path) -> None:
    made = engine(base)
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter.fill_(float("nan"))
    for asked in (made.train_step, made.eval_step):
        with pytest.raises(DivergedError, match="the loss is nan"):
            asked(batch())


def test_the_scaler_of_fp16_skips_gradients_that_are_not_finite() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.full((2,), float("inf"))
    check_finite_gradient([parameter], torch.amp.GradScaler("cpu"))
    with pytest.raises(DivergedError):
        check_finite_gradient([parameter], torch.amp.GradScaler("cpu", enabled=False))
