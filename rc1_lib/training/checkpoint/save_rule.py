"""When to save: every so many steps, and at least every so many minutes on machines that can vanish."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SaveRule:
    """How often checkpoints are written.

    Attributes:
        every_steps: on every multiple of this many steps.
        every_minutes: and whenever this much time has passed since the last one; None sets no such bound.
    """

    every_steps: int
    every_minutes: float | None

    def __post_init__(self) -> None:
        """Refuses a rule that would never save."""
        assert self.every_steps >= 1, f"every {self.every_steps} steps"
        assert self.every_minutes is None or self.every_minutes > 0, f"every {self.every_minutes} minutes"

    def due(self, step: int, saved_step: int, minutes_since: float) -> bool:
        """Whether to save now.

        Args:
            step: finished steps.
            saved_step: the step of the last checkpoint (the step resumed from, or 0).
            minutes_since: minutes since it was written, on a clock that never goes back.
        """
        if step <= saved_step:
            return False
        on_time = self.every_minutes is not None and minutes_since >= self.every_minutes
        return on_time or step % self.every_steps == 0
