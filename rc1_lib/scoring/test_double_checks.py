"""The mark of RC1's own test double on evidence that it had a part in, as checks of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.checks import equal, info
from rc1_lib.records import Check
from rc1_lib.run import Run


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
