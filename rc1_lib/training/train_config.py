"""The small local configuration (`configs/train_local.yaml`): run, data, model, engine, strategy, callbacks.

Both versions of the original specification define the keys. Keys that only the second version has are optional.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rc1_lib.config.curriculum import Tracking
from rc1_lib.config.engines import ENGINES, STRATEGIES, LearnsFrom, Spec, names_of, own_name
from rc1_lib.config.file import read_model
from rc1_lib.config.step_metrics import ANSWERS, HELD_OUT, READ, unmeasured
from rc1_lib.config.values import MetricName, NotNegative, Positive, Section, Seed, WrittenPath
from rc1_lib.errors import ConfigError

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The linear layers of a Qwen3 block: attention and feed-forward."""


def is_train_config(tree: Mapping[str, Any]) -> bool:
    """Whether the top-level keys are those of a small local configuration, not of a whole RC1 run."""
    return {"run", "model", "engine"} <= tree.keys()


def _distinct(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"duplicate name in: {', '.join(kinds)}")
    return kinds


def _registered(registry: Mapping[str, Spec]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in (names := names_of(registry)):
            raise ValueError(f"found '{name}', expected one of {', '.join(names)}")
        return name

    return AfterValidator(check)


class RunSection(Section):
    """Length, precision and outputs of the training."""

    seed: Seed
    """Seed of all random numbers."""
    output_dir: WrittenPath
    """Folder for checkpoints."""
    save_steps: Positive
    """Steps between checkpoints."""
    save_minutes: Annotated[float, Field(gt=0)] | None = None
    """Also save after this many minutes since the last checkpoint; for machines that can disappear."""
    keep_last: Positive | None = None
    """Number of newest checkpoints to keep; None keeps all."""
    grace_s: NotNegative = 30.0
    """Seconds after a SIGTERM to finish the step and write a checkpoint; 0: it ends the training at once."""
    eval_steps: Positive
    """Steps between evaluations on the held-out rows."""
    max_steps: Positive
    """Steps of the whole training."""
    mixed_precision: Literal["bf16", "fp16", "fp32"]
    """Number format. Without bf16 on the device, fp16 is used, or else fp32."""
    gradient_accumulation: Positive
    """Batches of `batch_size` rows per step."""
    device_pref: Annotated[tuple[Literal["cuda", "mps", "cpu"], ...], Field(min_length=1), AfterValidator(_distinct)]
    """Devices in order of preference; the first available one is used."""
    log_file: WrittenPath
    """Log file."""


class DataSection(Section):
    """Training rows and held-out rows."""

    train_path: Annotated[str, Field(min_length=1)]
    """JSON lines of training rows. A missing file named `*_min.jsonl` is filled with synthetic rows."""
    eval_path: Annotated[str, Field(min_length=1)]
    """JSON lines of held-out rows."""
    max_length: Annotated[int, Field(ge=2)]
    """Maximum number of tokens of a row, longer rows are truncated; in PPO of an answer, which is cut."""
    batch_size: Positive
    """Rows of `max_length` tokens in one forward pass; of shorter rows, as many as have the same number of tokens. A
    step learns from `batch_size` x `gradient_accumulation` rows."""
    padding_side: Literal["left", "right"] = "right"
    """Rows are padded on the right. `left` gives the same result, and exists because the specification has it."""


class LoraSection(Section):
    """The LoRA adapter."""

    enable: bool
    """Train an adapter; false trains the whole model."""
    r: Positive
    """Rank of the adapter."""
    alpha: Positive
    """Scale of the adapter: its output is multiplied by alpha / r."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    """Dropout on the adapter's input."""
    target_modules: Annotated[tuple[str, ...], Field(min_length=1)] = PROJECTIONS
    """Names of the linear layers to adapt."""


class ModelSection(Section):
    """The base model and its adapter."""

    base: Annotated[str, Field(min_length=1)]
    """A folder, or a name on the Hugging Face hub; `NAME@COMMIT` pins a commit."""
    trust_remote_code: bool = False
    """Not followed: code that comes with a model never runs."""
    use_flash_attention_2: bool = False
    """Use flash attention 2; needs its package and a GPU."""
    use_cache: Literal[False] = False
    """Training uses no KV cache; the key exists because the original specification has it."""
    gradient_checkpointing: bool = True
    """Recompute activations in the backward pass: less memory, more time."""
    quantization: Literal["nf4"] | None = None
    """`nf4` loads the frozen base in 4 bits (QLoRA)."""
    lora: LoraSection

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.quantization and not self.lora.enable:
            raise ValueError("model.quantization needs model.lora.enable: true; 4-bit weights cannot be trained")
        return self


class EngineSection(Section):
    """Name and settings of the engine. A notice names keys that the engine does not use."""

    name: Annotated[str, _registered(ENGINES)]
    """`trl_ppo`: the policy answers and is paid; `pure_pt_sft`: it learns the outputs."""
    lr: Annotated[float, Field(gt=0)]
    """Learning rate."""
    target_kl: Annotated[float, Field(gt=0)] | None = None
    """Only for PPO."""
    clip_coef: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Only for PPO."""
    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    """Clip the gradient's norm to this value; the callback `grad_clip` changes nothing."""


class StrategySection(Section):
    """Name of the strategy."""

    name: Annotated[str, _registered(STRATEGIES)]
    """What to learn from: `ppo` for its own answers, `sft` for the outputs."""


class Plain(Section):
    """A callback without settings."""

    name: Literal["logging", "checkpoint", "eval_shadow", "grad_clip"]
    """Name of the callback."""


class EarlyStop(Section):
    """Stop if a metric has not improved for a while."""

    name: Literal["early_stop"]
    """Name of the callback."""
    metric: MetricName
    """Metric, named as in the log. One that the engine does not measure is an error."""
    patience: Positive
    """Stop after this many measurements in a row without improvement."""
    higher_is_better: bool = False
    """Whether larger values of the metric are better."""


class LRSchedule(Section):
    """Schedule of the learning rate."""

    name: Literal["lr_schedule"]
    """Name of the callback."""
    kind: Literal["constant", "linear", "cosine"]
    """How the learning rate decays after the warm-up."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps in which the learning rate rises from 0."""


def _named(callback: Any) -> Any:
    """Turn `logging` and `early_stop: {patience: 3, ...}` into mappings with the key `name`."""
    if isinstance(callback, str):
        return {"name": callback}
    if isinstance(callback, Mapping) and len(callback) == 1 and "name" not in callback:
        [(name, settings)] = callback.items()
        return {"name": name, **(settings if isinstance(settings, Mapping) else {})}
    return callback


CallbackSection = Annotated[
    Annotated[Plain | EarlyStop | LRSchedule, Field(discriminator="name")], BeforeValidator(_named)
]


class TrainConfig(Section):
    """The whole file."""

    run: RunSection
    data: DataSection
    model: ModelSection
    engine: EngineSection
    strategy: StrategySection
    callbacks: tuple[CallbackSection, ...]
    tracking: Tracking = Tracking()

    @model_validator(mode="after")
    def _check(self) -> Self:
        _distinct(tuple(callback.name for callback in self.callbacks))
        looking = any(callback.name == "eval_shadow" for callback in self.callbacks)
        if self.tracking.to and all(callback.name != "logging" for callback in self.callbacks):
            raise ValueError("tracking.to needs the callback logging, which writes the metrics; add it to callbacks")
        for callback in self.callbacks:
            if isinstance(callback, EarlyStop) and (why := self._unmeasured(callback.metric)):
                raise ValueError(f"early_stop.metric: {why}")
            if isinstance(callback, EarlyStop) and callback.metric.startswith(HELD_OUT) and not looking:
                raise ValueError(f"early_stop.metric: only eval_shadow measures '{callback.metric}'; add it too")
            if callback.name == "grad_clip" and self.engine.max_grad_norm is None:
                raise ValueError("grad_clip needs a bound: set engine.max_grad_norm")
        return self

    def _unmeasured(self, metric: str) -> str:
        """Return why the metric is never measured, or "". Engines for groups are rejected elsewhere."""
        match ENGINES[own_name(self.engine.name)].learns_from:
            case LearnsFrom.DEMONSTRATIONS:
                return unmeasured(metric, self.engine.name, self.strategy.name, looked=READ)
            case LearnsFrom.EPISODES:
                return unmeasured(metric, self.engine.name, "rows", looked=ANSWERS)
        return ""


def load_train_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read `path`, apply `BASE_MODEL` and overrides (`a.b=c`, values in YAML syntax), and validate.

    Raises:
        ConfigError: naming file and key, what was found and what was expected.
    """
    base = os.environ.get("BASE_MODEL")
    return read_model(TrainConfig, path, (*([f"model.base={base}"] if base else []), *overrides), "run.max_steps=20")


def plays(config: TrainConfig) -> bool:
    """Return whether the policy answers the rows itself (PPO), instead of learning their outputs."""
    return ENGINES[own_name(config.engine.name)].learns_from is LearnsFrom.EPISODES


def check_of_rows(config: TrainConfig) -> None:
    """Reject engines and strategies that cannot learn from rows of input and output, before anything is loaded.

    Raises:
        ConfigError: naming those that can.
    """
    engine, strategy = config.engine.name, config.strategy.name
    learns = ENGINES[own_name(engine)].learns_from
    if learns is LearnsFrom.GROUPS:
        fitting = names_of(ENGINES, LearnsFrom.DEMONSTRATIONS, LearnsFrom.EPISODES)
        raise ConfigError(
            f"engine.name: {engine} compares several episodes of a prompt, which rows of input and output do not have; "
            f"use {', '.join(fitting)}, or train with configs/local.yaml"
        )
    if STRATEGIES[strategy].learns_from is not learns:
        fitting = names_of(STRATEGIES, learns)
        raise ConfigError(f"strategy.name: found '{strategy}', but {engine} learns from {learns}; use {fitting[-1]}")
    if plays(config) and not config.model.lora.enable:
        raise ConfigError("model.lora.enable: found false, but PPO compares an adapter with its base; set it to true")
