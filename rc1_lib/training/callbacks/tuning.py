"""Reaching an engine's optimizer, or its gradients, from a callback."""

from __future__ import annotations

from typing import Any

from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine, Scheduled, Tunable


def scheduled(engine: Engine[Any], callback: str) -> Scheduled:
    """The engine, known to show its optimizer.

    Raises:
        ConfigError: when it does not, so that `callback` could do nothing.
    """
    if not isinstance(engine, Scheduled):
        raise ConfigError(_refusal(engine, callback, "its optimizer"))
    return engine


def tunable(engine: Engine[Any], callback: str) -> Tunable:
    """The engine, known to call hooks on its gradients.

    Raises:
        ConfigError: when it does not, so that `callback` could do nothing.
    """
    if not isinstance(engine, Tunable):
        raise ConfigError(_refusal(engine, callback, "its gradients"))
    return engine


def _refusal(engine: Engine[Any], callback: str, what: str) -> str:
    return f"callbacks: '{callback}' needs an engine that shows {what}, {type(engine).__name__} does not; leave it out"
