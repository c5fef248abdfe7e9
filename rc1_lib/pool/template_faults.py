"""Describe why a template file does not fit the schema: the place, the value found and the value expected."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

_SHOWN = 80


def shown(value: Any) -> str:
    """Return a value as JSON, cut if it is too long for a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def describe(error: ValidationError, file: Path, body: Any, known_keys: Mapping[int, Sequence[str]]) -> str:
    """Return one sentence about the first error that pydantic found.

    Args:
        error: what pydantic raised on `body`.
        file: where `body` comes from.
        body: the decoded JSON.
        known_keys: the allowed keys by depth of the object: 0 the file, 2 a template, 3 its steps.
    """
    fault = error.errors()[0]
    place = fault["loc"]
    where = f"{file}: {_template(place, body)}"
    key = ".".join(str(part) for part in place[2:] or place)
    if fault["type"] == "extra_forbidden":
        known = known_keys[len(place) - 1]
        near = get_close_matches(str(place[-1]), known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys are {', '.join(known)}"
        return f"{where}unknown key '{key}' with {shown(fault['input'])}; {hint}"
    if fault["type"] == "missing":
        found = ", ".join(map(str, fault["input"])) or "no keys"
        return f"{where}key '{key}' is missing; found only {found}; add it"
    expected = str(fault.get("ctx", {}).get("error") or fault["msg"]).removeprefix("Input should be ")
    return f"{where}key '{key}' holds {shown(fault['input'])}; expected {expected}"


def _template(place: Sequence[int | str], body: Any) -> str:
    """Return the id of the faulty template, or its number if it has no id; empty for an error of the file itself."""
    if len(place) < 2 or not isinstance(place[1], int):
        return ""
    number = place[1]
    template = body["templates"][number]
    name = template.get("id") if isinstance(template, dict) else None
    return f"template {shown(name)}: " if name else f"template number {number + 1}: "
