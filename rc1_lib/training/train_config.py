"""The small local configuration (`configs/train_local.yaml`): run, data, model, engine, strategy, callbacks.

Keys and their meaning are those of the original work order, in both of its versions; what the second version added may
be left out. `is_train_config` distinguishes such a file from the configuration of a whole RC1 run.
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
from rc1_lib.config.step_metrics import HELD_OUT, READ, unmeasured
from rc1_lib.config.values import MetricName, Positive, Section, Seed, WrittenPath
from rc1_lib.errors import ConfigError

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The linear layers of a Qwen3 block: all of attention and of the feed-forward part."""


def is_train_config(tree: Mapping[str, Any]) -> bool:
    """Whether a file's top-level keys are those of a small local configuration."""
    return {"run", "model", "engine"} <= tree.keys()


def _distinct(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"names one twice: {', '.join(kinds)}")
    return kinds


def _registered(registry: Mapping[str, Spec]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in (names := names_of(registry)):
            raise ValueError(f"found '{name}', expected one of {', '.join(names)}")
        return name

    return AfterValidator(check)


class RunSection(Section):
    """How long, how precise, where to."""

    seed: Seed
    """Seed of everything that is drawn."""
    output_dir: WrittenPath
    """Where checkpoints are written."""
    save_steps: Positive
    """Steps from one checkpoint to the next."""
    save_minutes: Annotated[float, Field(gt=0)] | None = None
    """Also save when this much time has passed since the last checkpoint; for machines that can vanish."""
    keep_last: Positive | None = None
    """Remove older checkpoints; None keeps all."""
    eval_steps: Positive
    """Steps from one look at the held-out rows to the next."""
    max_steps: Positive
    """Steps of the whole training."""
    mixed_precision: Literal["bf16", "fp16", "fp32"]
    """The number format; where the device has no bf16: fp16, else fp32."""
    gradient_accumulation: Positive
    """Forward passes of one step."""
    device_pref: Annotated[tuple[Literal["cuda", "mps", "cpu"], ...], Field(min_length=1), AfterValidator(_distinct)]
    """Devices in order of preference; the first that is there is taken."""
    log_file: WrittenPath
    """Where the log is written."""


class DataSection(Section):
    """Rows."""

    train_path: Annotated[str, Field(min_length=1)]
    """JSON lines of rows to learn from; a missing file named `*_min.jsonl` is made up."""
    eval_path: Annotated[str, Field(min_length=1)]
    """JSON lines of rows that are held out."""
    max_length: Annotated[int, Field(ge=2)]
    """Most tokens of a row; what is longer is cut."""
    batch_size: Positive
    """Rows of `max_length` that fit one forward pass, which shorter ones fill up to as many tokens; a step learns from
    `batch_size` x `gradient_accumulation` rows."""
    padding_side: Literal["left", "right"] = "right"
    """Rows are filled on the right. `left` learns the same, and is there because the original names it."""


class LoraSection(Section):
    """The adapter."""

    enable: bool
    """Whether an adapter is trained; else the whole model."""
    r: Positive
    """Rank of the adapter's matrices."""
    alpha: Positive
    """Scale of the adapter: its output counts alpha / r."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    """Dropout of the adapter's input."""
    target_modules: Annotated[tuple[str, ...], Field(min_length=1)] = PROJECTIONS
    """Names of the linear layers that get an adapter."""


class ModelSection(Section):
    """The model."""

    base: Annotated[str, Field(min_length=1)]
    """A folder, or a name on the Hugging Face hub, followed by `@COMMIT` where it is to stay the same."""
    trust_remote_code: bool = False
    """Whether code that comes with the model may run."""
    use_flash_attention_2: bool = False
    """Whether to use that attention; it needs its package and a GPU."""
    use_cache: Literal[False] = False
    """Training keeps no cache; the key is there because the original names it."""
    gradient_checkpointing: bool = True
    """Less memory for more time: states are computed again for the gradients."""
    quantization: Literal["nf4"] | None = None
    """`nf4`: the frozen base in 4 bits (QLoRA)."""
    lora: LoraSection

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.quantization and not self.lora.enable:
            raise ValueError("model.quantization needs model.lora.enable: true, a base of 4 bits cannot be trained")
        return self


class EngineSection(Section):
    """The engine by name, and what the original gives engines. One that has no use for a key says so in a notice."""

    name: Annotated[str, _registered(ENGINES)]
    """What updates the model: `trl_sft` or `pure_pt_sft`; an engine of episodes refuses rows of input and output."""
    lr: Annotated[float, Field(gt=0)]
    """Learning rate."""
    target_kl: Annotated[float, Field(gt=0)] | None = None
    """For PPO."""
    clip_coef: Annotated[float, Field(gt=0, lt=1)] | None = None
    """For PPO."""
    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    """The gradient's norm is clipped to it."""


class StrategySection(Section):
    """The strategy by name."""

    name: Annotated[str, _registered(STRATEGIES)]
    """What is learned from a row: `sft`, or `ppo` for episodes."""


class Plain(Section):
    """Callbacks that need no settings."""

    name: Literal["logging", "checkpoint", "eval_shadow"]
    """Which one."""


class EarlyStop(Section):
    """Stop when a metric has not become better for a while."""

    name: Literal["early_stop"]
    """This one."""
    metric: MetricName
    """Name of the metric, as the log has it; one that the engine does not measure is refused."""
    patience: Positive
    """How many times in a row it may fail to become better, counted where it was measured."""
    min_delta: Annotated[float, Field(ge=0)]
    """What counts as better."""
    higher_is_better: bool = False
    """Whether a larger number is better."""


class GradClip(Section):
    """Clip the gradient's norm, as `engine.max_grad_norm` does also without it; a bare name takes that one."""

    name: Literal["grad_clip"]
    """This one."""
    max_norm: Annotated[float, Field(gt=0)] | None = None
    """The gradient's norm is clipped to it."""


class LRSchedule(Section):
    """The learning rate over the steps."""

    name: Literal["lr_schedule"]
    """This one."""
    kind: Literal["constant", "linear", "cosine"]
    """How the rate falls after the warm-up."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps over which the rate rises from 0."""


def _named(callback: Any) -> Any:
    """`logging` and `early_stop: {patience: 3, ...}` as mappings with the key `name`."""
    if isinstance(callback, str):
        return {"name": callback}
    if isinstance(callback, Mapping) and len(callback) == 1 and "name" not in callback:
        [(name, settings)] = callback.items()
        return {"name": name, **(settings if isinstance(settings, Mapping) else {})}
    return callback


CallbackSection = Annotated[
    Annotated[Plain | EarlyStop | GradClip | LRSchedule, Field(discriminator="name")], BeforeValidator(_named)
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
        adapted = self.model.lora.target_modules if self.model.lora.enable else ()
        why = ENGINES[own_name(self.engine.name)].refusal(adapted, "model.lora.target_modules")
        if why:
            raise ValueError(why)
        looking = any(callback.name == "eval_shadow" for callback in self.callbacks)
        if self.tracking.to and all(callback.name != "logging" for callback in self.callbacks):
            raise ValueError("tracking.to needs the callback logging, which writes the metrics; name it too")
        for callback in self.callbacks:
            if isinstance(callback, EarlyStop) and (why := self._unmeasured(callback.metric)):
                raise ValueError(f"early_stop.metric: {why}")
            if isinstance(callback, EarlyStop) and callback.metric.startswith(HELD_OUT) and not looking:
                raise ValueError(f"early_stop.metric is '{callback.metric}', which eval_shadow measures; name it too")
            if isinstance(callback, GradClip) and (callback.max_norm is None) == (self.engine.max_grad_norm is None):
                raise ValueError("grad_clip needs exactly one bound: its own max_norm, or engine.max_grad_norm")
        return self

    def _unmeasured(self, metric: str) -> str:
        """Why no run can end by this metric; "" too for an engine of episodes, which is refused as such."""
        if ENGINES[own_name(self.engine.name)].learns_from is not LearnsFrom.DEMONSTRATIONS:
            return ""
        return unmeasured(metric, self.engine.name, self.strategy.name, looked=READ)

    @property
    def max_norm(self) -> float | None:
        """What the gradient's norm is clipped to; None does not clip."""
        own = (callback.max_norm for callback in self.callbacks if isinstance(callback, GradClip) and callback.max_norm)
        return next(own, self.engine.max_grad_norm)


def load_train_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read `path`, apply `BASE_MODEL` and dotted overrides (`a.b=c`, values in YAML syntax), and validate.

    Raises:
        ConfigError: naming the file and the key, what was found and what is expected.
    """
    base = os.environ.get("BASE_MODEL")
    return read_model(TrainConfig, path, (*([f"model.base={base}"] if base else []), *overrides), "run.max_steps=20")


def check_of_rows(config: TrainConfig) -> None:
    """Refuse what cannot learn from rows of input and output, before anything is loaded or made up for it.

    Raises:
        ConfigError: saying what can.
    """
    engine, strategy = config.engine.name, config.strategy.name
    fitting = names_of(ENGINES, LearnsFrom.DEMONSTRATIONS)
    if engine not in fitting:
        raise ConfigError(
            f"engine.name: {engine} learns from episodes in RC1's dialogue world, and rows of input and output have "
            f"none; take {', '.join(fitting)} with strategy sft, or train with configs/local.yaml"
        )
    if STRATEGIES[strategy].learns_from is not LearnsFrom.DEMONSTRATIONS:
        raise ConfigError(f"strategy.name: found '{strategy}', but the engine {engine} plays no episodes; take sft")
