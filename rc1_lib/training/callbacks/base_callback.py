"""A callback that does nothing, for others to build on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


class BaseCallback:
    """Every hook of `Callback`, empty."""

    name = "callback"

    def on_start(self, trainer: Trainer) -> None:
        """Nothing."""

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Nothing."""

    def on_end(self, trainer: Trainer) -> None:
        """Nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to remember."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to put back."""
