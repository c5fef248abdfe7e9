"""Reads label files' records (JSON lines, a JSON array, CSV or TSV), and people's labels as numbers in [0, 1]."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rc1_lib.errors import ConfigError, RowError, SourceError
from rc1_lib.reward.verdict_agreement import VERDICT
from rc1_lib.sources.record_files import read_records
from rc1_lib.workspace.input_files import form_of, read_text

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".json")
_LONGEST = 2**31 - 1
"""Most bytes of a field, which may contain a whole dialogue."""


def records_of(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield every record with its last line number, from 1. A table's column `a.b` is the key `b` of the object `a`.

    Raises:
        RowError: when the file is missing, has another format, or is damaged; names the line.
    """
    suffix = form_of(path)
    if suffix not in (*_JSON, *_DELIMITERS):
        forms = ", ".join((*_JSON, *_DELIMITERS))
        raise RowError(f"{path}: found the file type '{suffix}', expected one of {forms}; convert it")
    if suffix in _JSON:
        try:
            yield from ((record.line, record.value) for record in read_records(path))
        except SourceError as error:
            raise RowError(str(error)) from None
    else:
        yield from _table(path, _DELIMITERS[suffix])


def _table(path: Path, delimiter: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = read_text(path)
    except OSError as error:
        raise RowError(f"{path}: cannot be read ({error.strerror}); expected a file of labels") from None
    except UnicodeDecodeError as error:
        raise RowError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        _check_header(path, header)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise RowError(
                    f"{path}, line {reader.line_num}: found {len(cells)} cells, expected the {len(header)} of the "
                    f"header; quote cells that contain the separator"
                )
            yield reader.line_num, _nested(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise RowError(f"{path}, line {reader.line_num}: is not a valid table ({error}); quote the cell") from None


def _check_header(path: Path, header: list[str]) -> None:
    if not any(name.strip() for name in header):
        raise RowError(f"{path}, line 1: found no column names, expected a header")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise RowError(f"{path}, line 1: the header names '{twice[0]}' twice; rename one of the columns")


def _nested(cells: Mapping[str, str]) -> dict[str, Any]:
    """Turn `{"a.b": c}` into `{"a": {"b": c}}`; empty cells become None."""
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        value = cell if cell.strip() else None
        outer, dot, inner = name.partition(".")
        if dot and outer and inner:
            found.setdefault(outer, {})[inner] = value
        else:
            found[name] = value
    return found


Scale = tuple[float, float]
_WORDS = {
    **dict.fromkeys(("true", "yes", "good", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "bad", "fail", "failed"), 0.0),
}
_MOST_LEVELS = 11
_TENTHS = tuple(step / 10 for step in range(11))
_EXPECTED = "expected a verdict (good or bad, yes or no, true or false)"


@dataclass(frozen=True, slots=True)
class Said:
    """One label as a number in [0, 1], or an error message."""

    value: float | None
    is_word: bool = False
    fault: str = ""


def read_scale(flag: str, text: str | None) -> Scale | None:
    """Parse a scale from `LOW:HIGH`.

    Raises:
        ConfigError: when it is not a scale.
    """
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        scale = float(low), float(high)
    except ValueError:
        scale = (0.0, 0.0)
    if not (math.isfinite(scale[0]) and math.isfinite(scale[1]) and scale[0] < scale[1]):
        raise ConfigError(f"{flag} {text}: expected LOW:HIGH, the worst and the best score, for example 1:5")
    return scale


def said(key: str, value: object, scale: Scale | None) -> Said:
    """Parse a label; None and empty texts are no label.

    Args:
        key: its name in error messages.
        value: the value in the file.
        scale: the worst and the best score; without one, scores are in [0, 1].
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return Said(None)
    if isinstance(value, bool):
        return Said(float(value), is_word=True)
    if isinstance(value, str) and (word := _WORDS.get(value.strip().lower())) is not None:
        return Said(word, is_word=True)
    found = as_number(value)
    low, high = scale or (0.0, 1.0)
    if found is None or not low <= found <= high:
        bounds = f"or a number from {low:g} to {high:g}"
        other = "" if scale else "; scores on another scale need --scale LOW:HIGH"
        return Said(None, fault=f"'{key}' is {value!r}, {_EXPECTED} {bounds}{other}")
    return Said((found - low) / (high - low))


def as_number(value: object) -> float | None:
    """Convert a number or its text to a finite float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def levels_of(labels: Sequence[float], scale: Scale | None) -> tuple[float, ...]:
    """Return the levels of judge and people: two for a verdict, a scale's whole numbers, else the labels' values.

    Scores with more than eleven values are rounded to tenths; with quadratic weights this matters little.
    """
    values = sorted({*labels, *VERDICT})
    if scale is not None and all(bound.is_integer() for bound in scale):
        low, high = scale
        steps = [(number - low) / (high - low) for number in range(int(low), int(high) + 1)]
        if len(steps) <= 101 and all(min(abs(value - step) for step in steps) < 1e-9 for value in values):
            return tuple(steps)
    return tuple(values) if len(values) <= _MOST_LEVELS else _TENTHS
