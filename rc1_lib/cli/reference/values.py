"""What a key takes, and what a file gives it, as short text."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

_PLAIN = {bool: "true or false", int: "integer", float: "number", str: "text"}
_LONG = 90
"""Characters from which on a value is not shown: whoever wants it opens the file."""


def accepted(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What a key of this type takes: `integer ≥ 1`, `list of text`, `text or null`.

    An alias that says what it stands for (`Field(description=...)`) is taken at its word.
    """
    described = [item.description for item in metadata if isinstance(item, FieldInfo) and item.description]
    if described:
        return str(described[0])
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return accepted(args[0], [*args[1:], *metadata])
    if origin in (Union, types.UnionType):
        return _alternatives(["null" if kind is type(None) else accepted(kind, metadata) for kind in args])
    if origin is Literal:
        return _alternatives([f"`{shown(choice)}`" for choice in args])
    if origin is tuple:
        length = " (at least one)" if any(isinstance(item, annotated_types.MinLen) for item in _parts(metadata)) else ""
        if args[-1] is Ellipsis:
            return f"list of {accepted(args[0])}{length}"
        return f"[{', '.join(accepted(kind) for kind in args)}]"
    if origin is dict:
        return f"{accepted(args[0])}: {accepted(args[1])}"
    return f"{_PLAIN[annotation]}{_bounds(metadata)}"


def _alternatives(texts: Sequence[str]) -> str:
    """`a, b or c`; with a comma before `or` where the parts have commas of their own."""
    if len(texts) == 1:
        return texts[0]
    comma = "," if any("," in text for text in texts) else ""
    return f"{', '.join(texts[:-1])}{comma} or {texts[-1]}"


def _parts(metadata: Sequence[Any]) -> Iterator[Any]:
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else (item,)


def _bounds(metadata: Sequence[Any]) -> str:
    """` ≥ 0, ≤ 1`, or the pattern of a text."""
    found = []
    for item in _parts(metadata):
        for sign, name in (("≥", "ge"), (">", "gt"), ("≤", "le"), ("<", "lt")):
            bound = getattr(item, name, None)
            if bound is not None:
                found.append(f"{sign} {_number(bound)}")
        if getattr(item, "pattern", None):
            found.append(f"like `{item.pattern}`")
        if isinstance(item, annotated_types.MinLen):
            found.append(f"of at least {item.min_length} character{'s' if item.min_length > 1 else ''}")
        if isinstance(item, annotated_types.MaxLen):
            found.append(f"of at most {item.max_length}")
    return f" {', '.join(found)}" if found else ""


def _number(value: float) -> str:
    if value == 2**63:
        return "2^63"
    if isinstance(value, int):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def shown(value: Any) -> str:
    """A value as one would write it in the file, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int() | float():
            return _number(value)
        case dict():
            return "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(shown(item) for item in value) + "]"
        case _:
            return str(value)


def given(tree: Any, path: Sequence[str]) -> str:
    """What a configuration gives the key at `path`; `*` stands for every name, `[]` for every entry of a list.

    Raises:
        KeyError: when it does not name the key.
    """
    text = _given(tree, list(path))
    return text if len(text) <= _LONG else "see the file"


def _given(tree: Any, path: list[str]) -> str:
    if not path:
        return shown(tree)
    step, rest = path[0], path[1:]
    if step == "*":
        return ", ".join(f"{name}: {_given(item, rest)}" for name, item in tree.items())
    if step == "[]":
        return ", ".join(_given(item, rest) for item in tree)
    if not isinstance(tree, dict):
        raise KeyError(step)
    return _given(tree[step], rest)


def sections_in(annotation: Any) -> tuple[tuple[str, ...], list[type[BaseModel]]]:
    """The sections that a key holds, and the steps that lead to them: `*` by name, `[]` in a list."""
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (), [annotation]
    if origin is Annotated:
        return sections_in(args[0])
    if origin in (Union, types.UnionType):
        return (), [section for kind in args for section in sections_in(kind)[1]]
    if origin is dict:
        steps, found = sections_in(args[1])
        return ("*", *steps), found
    if origin is tuple and args[-1] is Ellipsis:
        steps, found = sections_in(args[0])
        return ("[]", *steps), found
    return (), []
