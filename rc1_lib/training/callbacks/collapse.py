"""End a run that has collapsed, or whose steps teach nothing: several steps in a row beyond a bound.

NaN ends a run as soon as it appears. These metrics are finite, and some may look good for a while: a reward can rise
while the policy gives the same answer to everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rc1_lib.config.curriculum import Collapse
from rc1_lib.config.step_metrics import SIGNS_OF_COLLAPSE, SIGNS_OF_WASTE
from rc1_lib.errors import RC1Error
from rc1_lib.training.api import Callback
from rc1_lib.training.callbacks.logs import MetricsLog

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer

OF_SCORES = ("min_scores_std", "max_frac_zero_std")
"""Bounds on the spread of scores. They do not apply to a control, whose scores may all be the same."""


class CollapsedError(RC1Error):
    """The policy has collapsed, or its steps teach nothing."""


class Bound(NamedTuple):
    """A bound on a step, far from what a healthy run shows, and what it means to be beyond it.

    Attributes:
        limit: the most of a metric, or the least if the name begins with `min_`.
        found: what is wrong; `value` is the metric.
    """

    limit: float
    found: str
    remedy: str


_LOST = "lower lr, raise kl_coef, or check what the reward pays for"
BOUNDS: Mapping[str, Bound] = {
    "max_kl": Bound(1.0, "the KL to the initial policy has exploded: {value:.3g} nats per token", _LOST),
    "min_entropy": Bound(0.005, "the entropy has collapsed: {value:.3g} nats per token", _LOST),
    "max_same_answer": Bound(0.6, "the answers have collapsed: {value:.0%} of them are the same", _LOST),
    "max_clip_ratio": Bound(
        0.5,
        "{value:.0%} of the episodes are cut by a limit on tokens, so they earn nothing",
        "raise rollout_len (or training.rollout.thought_tokens, training.limits.tokens), or warm up longer "
        "(training.warm_start.steps) so that the policy ends its turns",
    ),
    "max_malformed": Bound(
        0.5,
        "{value:.0%} of the episodes have a malformed turn",
        "warm up longer (training.warm_start.steps), or lower lr",
    ),
    "min_scores_std": Bound(
        0.01,
        "all episodes of a kind score nearly the same: the standard deviation is {value:.3g}",
        "check reward/* in the metrics, raise training.rollout.temperature, or draw other rows (priority_sampling)",
    ),
    "max_frac_zero_std": Bound(
        0.9,
        "{value:.0%} of the prompts have rollouts with equal scores, so they teach nothing",
        "raise training.rollout.temperature or the update's group_size, or draw other rows (priority_sampling)",
    ),
}


def signs_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the bounds that a step exceeds, with the metrics' values. Metrics that were not measured are skipped."""
    beyond = {}
    for name, metric in {**SIGNS_OF_COLLAPSE, **SIGNS_OF_WASTE}.items():
        limit, value = BOUNDS[name].limit, metrics.get(metric)
        if value is not None and (value < limit if name.startswith("min_") else value > limit):
            beyond[name] = float(value)
    return beyond


class CollapseGuard(Callback):
    """Ends a run after several steps in a row beyond a bound.

    It must come after the callback that writes the metrics, and before the checkpoints. The count is read from the
    metrics file, so that a resumed run continues it.

    Attributes:
        reason: why the run has to end, as a sentence; "" if it has not.
        since: the first of these steps.
    """

    name = "collapse"

    def __init__(self, settings: Collapse, metrics: Path, without: Collection[str] = ()) -> None:
        """Keep the settings and the run's metrics file; bounds `without` do not apply."""
        self._settings, self._log, self._without = settings, MetricsLog(metrics), without
        self.recall(0)

    def recall(self, step: int) -> None:
        """Count the recorded steps up to `step`."""
        self._in_a_row: dict[str, int] = {}
        self.reason, self.since = "", 0
        for line in self._log.read() if step else ():
            if line["step"] <= step:
                self._count(int(line["step"]), line)

    def on_start(self, trainer: Trainer) -> None:
        """Continue the count where the run continues."""
        self.recall(trainer.step)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Count the step, and end the run if it was the last one allowed."""
        self._count(trainer.step, metrics)
        if self.reason:
            trainer.stop(self.reason)

    def _count(self, step: int, metrics: Mapping[str, Any]) -> None:
        beyond = {name: value for name, value in signs_of(metrics).items() if name not in self._without}
        self._in_a_row = {name: self._in_a_row.get(name, 0) + 1 for name in beyond}
        self.reason = ""
        for name, count in self._in_a_row.items():
            if count >= (self._settings.patience if name in SIGNS_OF_COLLAPSE else self._settings.wasted_patience):
                self.since = step - count + 1
                self.reason = self._sentence(name, beyond[name], count)
                return

    def _sentence(self, name: str, value: float, steps: int) -> str:
        limit, found, remedy = BOUNDS[name]
        end = "at least" if name.startswith("min_") else "at most"
        shown = f"{limit:.0%}" if "%" in found else f"{limit:g}"
        return (
            f"{found.format(value=value)}, {end} {shown} ({name}), {steps} steps in a row, since step {self.since}: "
            f"{remedy}"
        )
