"""Reading a judge's reply, strictly: scores, or the reason why there are none. Nothing is guessed or clipped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from rc1_lib.scoring.prompt import REASON

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(?P<body>.*?)\n\s*```\s*\Z", re.S)


class BadReplyError(ValueError):
    """A reply that holds no scores; the message says why."""


def read_scores(text: str, dimensions: Iterable[str]) -> dict[str, float]:
    """The scores of a reply.

    Args:
        text: the reply: one JSON object, alone or in one fenced block.
        dimensions: the names that it has to hold, each with a number in [0, 1].

    Raises:
        BadReplyError: when it is not JSON, holds other keys, or any value is not a number in [0, 1].
    """
    fenced = _FENCED.match(text)
    try:
        body = json.loads(fenced["body"] if fenced else text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except BadReplyError:
        raise
    except (ValueError, RecursionError) as error:
        raise BadReplyError(f"is not one JSON object ({error})") from None
    if not isinstance(body, dict):
        raise BadReplyError(f"is a JSON {type(body).__name__}, expected an object")
    wanted = tuple(dimensions)
    missing = [name for name in (*wanted, REASON) if name not in body]
    strange = [name for name in body if name not in wanted and name != REASON]
    if missing or strange:
        raise BadReplyError("; ".join(_named(("lacks", missing), ("holds the unknown", strange))))
    if not isinstance(body[REASON], str):
        raise BadReplyError(f"holds a {REASON} that is no text")
    return {name: _score(name, body[name]) for name in wanted}


def _score(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReplyError(f"holds {name} = {json.dumps(value)[:40]}, expected a number")
    if not 0 <= value <= 1:  # NaN, infinities and whole numbers that no float can hold among what is not
        raise BadReplyError(f"holds {name} = {str(value)[:20]}, expected a number from 0 to 1")
    return float(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadReplyError("names a key twice, so it does not say which value counts")
    return found


def _no_constant(name: str) -> float:
    raise BadReplyError(f"holds {name}, expected a number from 0 to 1")


def _named(*lists: tuple[str, list[str]]) -> list[str]:
    return [f"{what} {', '.join(map(_shown, names[:5]))}" for what, names in lists if names]


def _shown(name: str) -> str:
    """A key as it can be told: it may hold anything, half a surrogate pair included."""
    return ascii(name[:40])[1:-1]
