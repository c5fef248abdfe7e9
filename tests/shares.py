"""Of a sweep over engines, providers or sizes `make test` has a share; the other cases are `long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def share(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """Cases for `parametrize`: those that are `kept`, or begin with what is, stay; `make test-long` has the others.

    Raises:
        ValueError: when a case that is to stay is none of them, so that a share cannot get lost with a name.
    """
    given = list(cases)
    stay = [any(case is one or case == one or _first(case) == one for one in kept) for case in given]
    if sum(stay) < len(kept):
        raise ValueError(f"{kept} are to stay, but not all of them are among {given}")
    return [
        case if stays else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
        for case, stays in zip(given, stay, strict=True)
    ]


def _first(case: Any) -> Any:
    return case[0] if isinstance(case, tuple) else None
