"""Stop if a metric has not improved for a while."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rc1_lib.config.step_metrics import EPISODE_FIGURES, HELD_OUT
from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Callback

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


class EarlyStop(Callback):
    """Counts measurements in a row without improvement. Steps that do not measure the metric do not count.

    A value that is not finite is never an improvement.

    Attributes:
        stopped: whether it has ended the run.
    """

    name = "early_stop"

    def __init__(
        self,
        metric: str,
        patience: int,
        higher_is_better: bool,
        not_before: int = 0,
        *,
        key: str = "callbacks.early_stop.metric",
    ) -> None:
        """Stop after `patience` measurements that do not improve on the best one.

        Args:
            metric: its name among the metrics of a step.
            patience: at least 1.
            higher_is_better: whether larger values are better.
            not_before: the first step at which a run may end.
            key: configuration key of the metric, for the message.
        """
        assert patience >= 1
        self.stopped, self._not_before, self._key = False, not_before, key
        self._metric, self._patience = metric, patience
        self._sign = 1.0 if higher_is_better else -1.0
        self._best: float | None = None
        self._failed = 0

    def on_start(self, trainer: Trainer) -> None:
        """Keep a stopped run stopped when it is resumed."""
        self._judge(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Check the metric if it was measured.

        Raises:
            ConfigError: if the first step, or the first evaluation on held-out rows, should have measured it and has
                not.
        """
        self._check_named(trainer.step, metrics)
        value = metrics.get(self._metric)
        if value is None:
            return
        if math.isfinite(value) and (self._best is None or self._sign * (value - self._best) > 0):
            self._best, self._failed = value, 0
        else:
            self._failed += 1
        self._judge(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Return the best value, and the number of measurements since."""
        return {"best": self._best, "failed": self._failed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore best value and count."""
        self._best, self._failed = state["best"], state["failed"]

    def _check_named(self, step: int, metrics: dict[str, float | None]) -> None:
        """Reject a metric that nothing measures, which is probably a wrong name.

        Metrics of episodes may be absent in a step. For RC1's own engines the configuration has been checked before.
        For custom engines it is only known now.
        """
        never_measured = self._best is None and self._failed == 0
        if not never_measured or self._metric in metrics or self._metric.removeprefix(HELD_OUT) in EPISODE_FIGURES:
            return
        shadow = self._metric.startswith(HELD_OUT)
        there = sorted(name for name in metrics if name.startswith(HELD_OUT) is shadow)
        if there:
            raise ConfigError(
                f"{self._key}: found '{self._metric}', which step {step} did not measure; expected one of "
                f"{', '.join(there)}"
            )

    def ends(self, step: int) -> bool:
        """Whether the measurements up to this step end the run."""
        return self._failed >= self._patience and step >= self._not_before

    def _judge(self, trainer: Trainer) -> None:
        self.stopped = self.ends(trainer.step)
        if self.stopped:
            best = "no finite value" if self._best is None else f"{self._best:.6g}"
            trainer.stop(f"{self._metric} did not improve on {best} in {self._failed} measurements")
