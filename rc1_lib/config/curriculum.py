"""The sections of `training` on the course of a run: checkpoints, early stopping, limits and metric trackers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rc1_lib.config.values import MetricName, NotNegative, Positive, Section


class Checkpoints(Section):
    """When checkpoints are written, and which of them are kept."""

    every_steps: Positive
    """Steps from one checkpoint to the next."""
    every_minutes: Annotated[float, Field(gt=0)] | None
    """Also whenever this much time has passed since the last one; null: no such limit."""
    keep_last: Annotated[int, Field(ge=2)] | None
    """How many of the newest are kept. Older ones are also kept if `keep_every` selects them, if a report names them by
    SHA-256, or if they are marked to be kept; others are removed as new ones are written. At least 2 and more than
    `training.collapse.patience`, so that a good one is left; null: all are kept."""
    keep_every: Positive | None
    """Older ones are kept at every multiple of this many steps; null: none."""
    grace_s: NotNegative = 30.0
    """Seconds after a SIGTERM in which training finishes its step and writes a checkpoint, before the signal ends it; a
    second signal ends it at once, as does the first one with 0."""

    @model_validator(mode="after")
    def _check_retention(self) -> Self:
        if self.keep_every is None:
            return self
        if self.keep_last is None:
            raise ValueError(
                f"keep_every is {self.keep_every}, but keep_last is null, which keeps all; set keep_last too"
            )
        if self.keep_every % self.every_steps:
            raise ValueError(
                f"keep_every is {self.keep_every}, expected a multiple of every_steps ({self.every_steps}), since "
                f"checkpoints exist only at such steps"
            )
        return self


class Collapse(Section):
    """After how many steps beyond a bound training ends with a checkpoint, a message and exit code 2.

    The bounds are in `rc1_lib.training.callbacks.collapse`.
    """

    patience: Positive
    """Consecutive steps with a sign of a collapsed policy: KL, entropy, or one answer to everything."""
    wasted_patience: Positive
    """Consecutive steps that teach nothing: episodes cut or malformed, or scores that are all the same."""


class Cap(Section):
    """Limits on the training of one seed, without its evaluation.

    At a limit it pauses with a checkpoint. It continues with a new ticket that has a higher limit.
    """

    hours: Annotated[float, Field(gt=0)] | None
    """Maximum hours of its steps; null: no limit."""
    usd: Annotated[float, Field(gt=0)] | None
    """Maximum USD for the judge of its episodes, including checks for drift; null: no limit."""


class ShadowLook(Section):
    """Evaluation during training: the policy plays held-out rows at intervals (metrics `eval/*`)."""

    every_steps: Positive | None
    """Steps between these evaluations; the last of `steps` is evaluated too. null: never."""


class EarlyStopping(Section):
    """When a run ends before `steps`; the evaluation then uses its last policy."""

    metric: MetricName | None
    """Name of a metric as in the log: `eval/env/success` with `training.eval_shadow`, or a metric of every step; null:
    all steps are trained. An unknown metric is an error that lists the valid names."""
    patience: Positive
    """Consecutive measurements without improvement after which the run ends."""
    higher_is_better: bool
    """Whether a larger number is better."""
    not_before: Positive
    """The first step at which the run may end; at least `gates.training.min_steps`."""


Tracker = Literal["wandb", "mlflow"]


class Tracking(Section):
    """Trackers that receive the metrics of every step, in addition to the workspace's files; they only observe."""

    to: tuple[Tracker, ...] = ()
    """`wandb` (Weights & Biases), `mlflow`: optional extras of RC1 that write offline below `logs`."""
