"""The small pool and the tiny base of the training tests."""

from __future__ import annotations

from tests.training.conftest import _threads_as_before, pool, tiny, tiny_workspace

__all__ = ["_threads_as_before", "pool", "tiny", "tiny_workspace"]
