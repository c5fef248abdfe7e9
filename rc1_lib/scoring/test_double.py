"""How the test double is told from a judge wherever its replies end up."""

from __future__ import annotations

MODEL_PREFIX = "rc1-test-double"
NOTICE = "TEST DOUBLE: scores here were made up by RC1's own server for tests; they are no judge's."
"""What whoever is shown such scores is told first."""


def is_test_double(model: str) -> bool:
    """Whether a model version is the test double's."""
    return model.startswith(MODEL_PREFIX)
