"""`make test` runs a part of a sweep over engines, providers or sizes; the other cases are marked `long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def share(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """Cases for `parametrize`: `make test` runs the kept ones, `make test-long` the others.

    Args:
        cases: all cases.
        kept: cases, or their first values.

    Raises:
        ValueError: when there is no such case, so that renaming a case cannot silently drop it from `make test`.
    """
    given = list(cases)
    stay = [any(case is one or case == one or _first(case) == one for one in kept) for case in given]
    if sum(stay) < len(kept):
        raise ValueError(f"{kept} should be kept, but not all of them are among {given}")
    return [
        case if stays else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
        for case, stays in zip(given, stay, strict=True)
    ]


def _first(case: Any) -> Any:
    return case[0] if isinstance(case, tuple) else None
