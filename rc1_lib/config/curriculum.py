"""The sections of `training` on its course: checkpoints, early stopping, limits and metric trackers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rc1_lib.config.values import MetricName, NotNegative, Positive, Section, Share


class Checkpoints(Section):
    """When checkpoints are written, and which of them are kept."""

    every_steps: Positive
    """Steps from one checkpoint to the next."""
    every_minutes: Annotated[float, Field(gt=0)] | None
    """Also whenever this much time has passed since the last one; null: no such limit."""
    keep_last: Annotated[int, Field(ge=2)] | None
    """How many of the newest are kept. Of the older ones, those that `keep_every` or `held_out.between` selects, that a
    report names by SHA-256, or that are marked to be kept stay too; others are removed as new ones are written. At
    least 2 and more than `training.collapse.patience`, so that a good one is left; null: all are kept."""
    keep_every: Positive | None
    """Older ones are kept at every multiple of this many steps; null: none."""

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
    """Bounds that end a training with a checkpoint, a sentence and exit code 2; null switches one off.

    The first three are signs of a policy that is lost; the other four, of steps that teach nothing.
    """

    max_kl: Annotated[float, Field(gt=0)] | None
    """Largest KL to the start, in nats per token of the policy."""
    min_entropy: NotNegative | None
    """Least mean entropy of the token distribution, in nats."""
    max_same_answer: Share | None
    """Largest share of a step's answers that may be the same answer."""
    patience: Positive
    """Training ends after this many consecutive steps beyond one of the three bounds above."""
    max_clip_ratio: Share | None
    """Largest share of a step's episodes that may be cut by `rollout_len` or another limit on tokens."""
    max_malformed: Share | None
    """Largest share of a step's episodes that may have a malformed turn."""
    min_scores_std: NotNegative | None
    """Least standard deviation of a step's episode scores (rewards)."""
    max_frac_zero_std: Share | None
    """Largest share of prompts whose rollouts may all get the same score; for engines that compare groups."""
    wasted_patience: Positive
    """Training ends after this many consecutive steps beyond one of the four bounds above."""


class Cap(Section):
    """Limits on the training of one seed, without its evaluation.

    At a limit it pauses with a checkpoint; with a higher limit in a new ticket it continues.
    """

    hours: Annotated[float, Field(gt=0)] | None
    """Most hours of its steps; null: no limit."""
    usd: Annotated[float, Field(gt=0)] | None
    """Most USD for the judge of its episodes, including checks for drift; null: no limit."""


class ShadowLook(Section):
    """Evaluation during training: the policy plays held-out rows at intervals (metrics `eval/*`)."""

    every_steps: Positive | None
    """Steps between these evaluations; the last of `steps` is evaluated too. null: never."""
    prompts: Positive
    """How many rows are played, each once; their source questions are held out and not used by the final evaluation."""


class EarlyStopping(Section):
    """When a run ends before `steps`; the evaluation then uses its last policy."""

    metric: MetricName | None
    """Name of a metric as in the log: `eval/env/success` with `training.eval_shadow`, or a metric of every step; null:
    all steps are trained. A metric that the engine does not measure is an error, which lists the valid names."""
    patience: Positive
    """How many consecutive measurements may bring no improvement."""
    min_delta: NotNegative
    """The least improvement that counts."""
    higher_is_better: bool
    """Whether a larger number is better."""
    not_before: Positive
    """The first step at which the run may end; at least `gates.training.min_steps`."""


Tracker = Literal["wandb", "mlflow"]


class Tracking(Section):
    """Trackers that receive the metrics of every step, besides the workspace's files. They do not affect training."""

    to: tuple[Tracker, ...] = ()
    """`wandb` (Weights & Biases), `mlflow`: optional extras of RC1 that write offline below `logs`."""
    project: Annotated[str, Field(min_length=1)] = "rc1"
    """The project or experiment to which runs belong."""
