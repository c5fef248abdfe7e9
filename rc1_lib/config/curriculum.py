"""The sections of `training` on its course: what is kept and looked at on the way, what ends it, who is told."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rc1_lib.config.values import MetricName, NotNegative, Positive, Section, Share


class Checkpoints(Section):
    """When checkpoints are written, and which of them stay."""

    every_steps: Positive
    """Steps from one checkpoint to the next."""
    every_minutes: Annotated[float, Field(gt=0)] | None
    """And whenever this much time has passed since the last one; null sets no such bound."""
    keep_last: Annotated[int, Field(ge=2)] | None
    """So many of the newest stay, and of the older ones those that `keep_every` or `held_out.between` names, that a
    report names by their SHA-256, or that are kept for good; the others are removed as new ones are written. At least
    2 and `training.collapse.patience`, so that a good one is left; null: all stay."""
    keep_every: Positive | None
    """Older ones stay at every multiple of this many steps; null: at none."""

    @model_validator(mode="after")
    def _check_keeping(self) -> Self:
        if self.keep_every is None:
            return self
        if self.keep_last is None:
            raise ValueError(
                f"keep_every is {self.keep_every}, but keep_last is null, by which all stay; set keep_last too"
            )
        if self.keep_every % self.every_steps:
            raise ValueError(
                f"keep_every is {self.keep_every}, expected a multiple of every_steps ({self.every_steps}): there are "
                f"checkpoints to keep at such steps only"
            )
        return self


class Collapse(Section):
    """Signs that a run is lost; one that is null is not looked at."""

    max_kl: Annotated[float, Field(gt=0)] | None
    """Largest KL to the start, in nats per token of the policy."""
    min_entropy: NotNegative | None
    """Least mean entropy of what tokens are drawn from, in nats."""
    max_same_answer: Share | None
    """Largest share of a step's answers that may be one and the same."""
    patience: Positive
    """Steps in a row with a sign, at which training ends."""


class Cap(Section):
    """What the training of one seed may take, its evaluation apart.

    At a bound it pauses with a checkpoint; a ticket with a higher one lets it go on.
    """

    hours: Annotated[float, Field(gt=0)] | None
    """Most hours of its steps; null sets no bound."""
    usd: Annotated[float, Field(gt=0)] | None
    """Most USD that the judge of its episodes is paid, also for looking whether it has changed; null sets no bound."""


class ShadowLook(Section):
    """A look at whether training generalises: the policy plays held-out rows on its way, as `eval/*` of the metrics."""

    every_steps: Positive | None
    """Steps from one look to the next; the last of `steps` is looked at too. null: none is taken."""
    prompts: Positive
    """How many rows are played, each once: of source questions that are held out, and not asked by the evaluation."""


class EarlyStopping(Section):
    """When a run ends before `steps`; what it has come to then is what the evaluation judges."""

    metric: MetricName | None
    """Name of a metric, as the log has it: `eval/env/success` with `training.eval_shadow`, or one of every step; null:
    every step is trained. One that the engine does not measure is refused, and named with those that it does."""
    patience: Positive
    """How many times in a row it may fail to become better, counted where it was measured."""
    min_delta: NotNegative
    """What it has to become better by."""
    higher_is_better: bool
    """Whether a larger number is better."""
    not_before: Positive
    """The first step that the run may end with; at least `gates.training.min_steps`."""


Tracker = Literal["wandb", "mlflow"]


class Tracking(Section):
    """Where the metrics of every step go beside the workspace's own files. What is learned does not hang on it."""

    to: tuple[Tracker, ...] = ()
    """`wandb` (Weights & Biases), `mlflow`: each an extra of RC1, each offline, below `logs`."""
    project: Annotated[str, Field(min_length=1)] = "rc1"
    """The project or experiment that runs are put under."""
