"""Typed access to a decoded record's keys; errors name the key, what was found and what was expected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rc1_lib.errors import SourceError
from rc1_lib.task_specs.spec import UnusableRecord
from rc1_lib.task_specs.wording import tidy

HAN, _LETTERS = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[^\W\d_\u3400-\u9fff]")


def mostly_chinese(said: str) -> bool:
    """Whether a text has more Han characters than other letters."""
    return len(HAN.findall(said)) > len(_LETTERS.findall(said))


def required(record: Mapping[str, Any], key: str) -> Any:
    """Return the value under `key`. Raises SourceError if the key is missing."""
    if key not in record:
        found = ", ".join(sorted(map(str, record))) or "no keys"
        raise SourceError(f"the key '{key}' is missing (found: {found})")
    return record[key]


def text(record: Mapping[str, Any], key: str) -> str:
    """Return the text under `key`. Raises SourceError if it is missing or not text."""
    value = required(record, key)
    if not isinstance(value, str):
        raise wrong_type(key, value, "text")
    return value


def question(record: Mapping[str, Any]) -> str:
    """Return the tidied question. Raises SourceError as `text` does, and UnusableRecord if it is mostly Chinese."""
    found = tidy(text(record, "question"))
    if mostly_chinese(found):
        raise UnusableRecord("the question is mostly Chinese; the templates for any data set are English")
    return found


def texts(record: Mapping[str, Any], key: str) -> list[str]:
    """Return the list of texts under `key`. Raises SourceError if it is missing or something else."""
    return text_list(required(record, key), key)


def text_list(value: object, key: str) -> list[str]:
    """Return `value` as a list of texts; `key` names it in the SourceError."""
    items = sequence(value, key)
    for item in items:
        if not isinstance(item, str):
            raise wrong_type(key, item, "a list of texts")
    return list(items)


def sequence(value: object, key: str) -> Sequence[Any]:
    """Return `value` as a list or tuple. Raises SourceError otherwise."""
    if not isinstance(value, list | tuple):
        raise wrong_type(key, value, "a list")
    return value


def wrong_type(key: str, value: object, expected: str) -> SourceError:
    """Return the error for a value of the wrong type."""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return SourceError(f"the key '{key}' holds {shown} ({type(value).__name__}); expected {expected}.")
