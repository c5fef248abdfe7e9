"""How the test double is told from a judge wherever its replies end up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.checks import equal, info
from rc1_lib.records import Check
from rc1_lib.run import Run

MODEL_PREFIX = "rc1-test-double"
NOTICE = "TEST DOUBLE: scores here were made up by RC1's own server for tests; they are no judge's."
"""What whoever is shown such scores is told first."""


def is_test_double(model: str) -> bool:
    """Whether a model version is the test double's."""
    return model.startswith(MODEL_PREFIX)


def double_checks(run: Run, test_double: object) -> tuple[Check, ...]:
    """The mark; in profile `prod` it is red. None only where `test_double` is False: a report may say anything."""
    if test_double is False:
        return ()
    mark = "TEST DOUBLE: these scores are made up"
    if run.config.profile == "prod":
        return (equal(mark, True, False, "profile prod takes a real judge's scores only: use a fresh workspace"),)
    return (info(mark, True),)


def said_double(report: Mapping[str, Any] | None) -> object:
    """What a report says of the test double; None where it says nothing, which is no denial."""
    scoring = (report or {}).get("scoring")
    return scoring.get("test_double") if isinstance(scoring, Mapping) else None
