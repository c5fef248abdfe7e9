"""Stop when a metric has not become better for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rc1_lib.errors import ConfigError
from rc1_lib.training.callbacks.quiet import Quiet

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


class EarlyStop(Quiet):
    """Counts how many times in a row a metric failed to become better; steps without it do not count.

    Attributes:
        stopped: whether it has ended the run.
    """

    name = "early_stop"

    def __init__(
        self, metric: str, patience: int, min_delta: float, higher_is_better: bool, not_before: int = 0
    ) -> None:
        """Stop after `patience` measurements that are not better than the best one by more than `min_delta`.

        Args:
            metric: its name among the metrics of a step.
            patience: at least 1.
            min_delta: at least 0.
            higher_is_better: whether a larger number is better.
            not_before: the first step that a run may end with.
        """
        assert patience >= 1 and min_delta >= 0
        self.stopped, self._not_before = False, not_before
        self._metric, self._patience, self._min_delta = metric, patience, min_delta
        self._sign = 1.0 if higher_is_better else -1.0
        self._best: float | None = None
        self._failed = 0

    def on_start(self, trainer: Trainer) -> None:
        """A run that was stopped stays stopped when it is resumed."""
        self._judge(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Look at the metric where it was measured."""
        value = metrics.get(self._metric)
        if value is None:
            return
        if self._best is None or self._sign * (value - self._best) > self._min_delta:
            self._best, self._failed = value, 0
        else:
            self._failed += 1
        self._judge(trainer)

    def on_end(self, trainer: Trainer) -> None:
        """A metric that never came is a mistake in its name.

        Raises:
            ConfigError: when it was never measured in all steps.
        """
        if self._best is None and trainer.step >= trainer.max_steps:
            raise ConfigError(
                f"callbacks.early_stop.metric: '{self._metric}' was never measured in {trainer.step} steps"
            )

    def state_dict(self) -> dict[str, Any]:
        """The best value, and how often it was missed since."""
        return {"best": self._best, "failed": self._failed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on counting."""
        self._best, self._failed = state["best"], state["failed"]

    def _judge(self, trainer: Trainer) -> None:
        self.stopped = self._failed >= self._patience and trainer.step >= self._not_before
        if self.stopped:
            trainer.stop(f"{self._metric} did not become better than {self._best:.6g} in {self._failed} measurements")
