"""How the test double is told from a judge wherever its replies end up."""

from __future__ import annotations

MODEL_PREFIX = "rc1-test-double"


def is_test_double(model: str) -> bool:
    """Whether a model version is the test double's."""
    return model.startswith(MODEL_PREFIX)
