"""Reads a label file and checks every line before any is used.

A row has a dialogue (`messages`, or the texts `prompt` and `completion`) or existing scores (`dimensions`, with an
`id`), and a person's `label`. A row without a label is an unlabelled dialogue, which counts for the share of good ones.
`group` names rows that are not independent, `bucket` a part to report separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from rc1_lib.errors import RC1Error, RowError
from rc1_lib.judge.prompt import dialogue_sha256
from rc1_lib.labels.records import Scale, as_number, levels_of, records_of, said
from rc1_lib.provenance.derived import Given
from rc1_lib.records import Message
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.reward.verdict_agreement import VERDICT
from rc1_lib.run import Run

GATE = "judge_agreement"
BY_PEOPLE, SCORED = "labels.", "dimensions."
"""Prefixes of a criterion's columns: a person's label, and an existing score."""
TAKEN = frozenset(
    "line dialogue group bucket annotator model spec_sha256 label scored unstable share this_judge main".split()
)
"""Columns of the comparison table; criteria cannot have these names."""
_SHOWN = 10
_ONE_OF = ("group", "bucket", "model", "spec_sha256")
"""The columns, besides scores, in which two rows about one dialogue must agree."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys or columns of a file.

    Attributes:
        label: a person's verdict or overall score.
        group: rows that belong together.
        bucket: a part to report separately.
        dimensions: keys of scores; if empty, those of the object `dimensions`.
    """

    label: str = "label"
    group: str = "group"
    bucket: str = "bucket"
    dimensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The content of a label file.

    Attributes:
        path: the file.
        rows: one line per row: `line, dialogue, group, bucket, annotator, model, spec_sha256, label` (null if
            unlabelled), `labels.<d>` for criteria that people graded, `dimensions.<d>` for scores in the file.
        messages: fingerprint of a dialogue -> its messages; empty if rows only have scores.
        dimensions: the criteria with scores in the file.
        graded: the criteria that people graded.
        levels: the label levels.
    """

    path: Path
    rows: pl.DataFrame
    messages: Mapping[str, list[Message]]
    dimensions: tuple[str, ...]
    graded: tuple[str, ...]
    levels: tuple[float, ...]


@dataclass(slots=True)
class _Reading:
    """The rows read so far, and the errors found."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    messages: dict[str, list[Message]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    words: int = 0
    """The first line with a word as its label."""
    scores: int = 0
    """The first line with a score other than 0 and 1 as its label."""


def read_labels(path: Path, keys: Keys | None = None, scale: Scale | None = None, *, needed: bool = True) -> LabelFile:
    """Read a label file.

    Args:
        path: `.jsonl`, `.json`, `.csv` or `.tsv`.
        keys: its keys or columns.
        scale: the worst and the best score; without one, scores are in [0, 1].
        needed: whether at least one label is required.

    Raises:
        RowError: names the faulty lines, what was found, what was expected and what to do.
    """
    found, names = _Reading(), keys or Keys()
    for line, record in records_of(path):
        try:
            row = _row(record, line, names, scale, found)
        except RC1Error as error:
            found.faults.append(f"line {line}: {error}")
        else:
            found.rows.append(row)
    _check(path, found, names, needed)
    dimensions = _named(found.rows, SCORED)
    graded = _named(found.rows, BY_PEOPLE)
    rows = pl.DataFrame(found.rows, schema=_schema(dimensions, graded))
    labels = rows["label"].drop_nulls().to_list()
    levels = VERDICT if found.words or (scale is None and set(labels) <= {*VERDICT}) else levels_of(labels, scale)
    return LabelFile(path, rows, found.messages, dimensions, graded, levels)


def _row(record: Mapping[str, Any], line: int, keys: Keys, scale: Scale | None, found: _Reading) -> dict[str, Any]:
    scores = _scores(record, keys)
    dialogue = _dialogue(record, bool(scores), found)
    label = said(keys.label, record.get(keys.label), scale)
    if label.fault:
        raise RowError(label.fault)
    if label.is_word:
        found.words = found.words or line
    elif label.value not in (None, *VERDICT):
        found.scores = found.scores or line
    return {
        "line": line,
        "dialogue": dialogue,
        "group": _text(record.get(keys.group)) or dialogue,
        "bucket": _text(record.get(keys.bucket)),
        "annotator": _text(record.get("annotator")),
        "model": _text(record.get("model")),
        "spec_sha256": _text(record.get("spec_sha256")),
        "label": label.value,
        **_person_labels(record, scale),
        **{f"{SCORED}{name}": value for name, value in scores.items()},
    }


def _dialogue(record: Mapping[str, Any], scored: bool, found: _Reading) -> str:
    """Return the name of the row's dialogue: its fingerprint if present, so that a copy with a new id has the same."""
    given, prompt = record.get("messages"), record.get("prompt")
    if given is None and prompt is None:
        name = _text(record.get("id"))
        if scored and name:
            return name
        lacks = "'id' to tell which rows are about the same dialogue" if scored else "scores either"
        raise RowError(
            f"found no 'messages' and no 'prompt', and no {lacks}; expected the dialogue (chat messages, or the texts "
            f"'prompt' and 'completion'), or an 'id' and its 'dimensions'; found the keys {', '.join(record)}"
        )
    if given is not None:
        messages = dialogue_of([], _parsed(given, "messages"), "'messages'")
    else:
        messages = dialogue_of(_parsed(prompt, "prompt"), _parsed(record.get("completion"), "completion"), "'prompt'")
    name = dialogue_sha256(messages)
    found.messages.setdefault(name, messages)
    return name


def _parsed(value: object, key: str) -> object:
    """Parse the JSON in a table cell; return other text unchanged."""
    if not isinstance(value, str) or (key != "messages" and not value.lstrip().startswith("[{")):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise RowError(f"'{key}' is not JSON ({error}); expected a list of chat messages") from None


def _scores(record: Mapping[str, Any], keys: Keys) -> dict[str, float | None]:
    held = record.get("dimensions")
    if keys.dimensions:
        held = {name: record.get(name) for name in keys.dimensions}
        absent = [name for name in keys.dimensions if name not in record]
        if absent:
            raise RowError(
                f"has no '{absent[0]}'; found the keys {', '.join(record)}; name other keys with --dimensions"
            )
    if held is None:
        return {}
    if not isinstance(held, Mapping) or not held:
        raise RowError(f"'dimensions' is {held!r}, expected an object of scores from 0 to 1 by name")
    found = {}
    for name, value in held.items():
        if name in TAKEN:
            raise RowError(f"criterion '{name}': RC1's table has a column of that name; rename the criterion")
        number = as_number(value)
        if value is not None and (number is None or not 0 <= number <= 1):
            raise RowError(f"criterion '{name}' is {value!r}, expected a number from 0 to 1, or nothing; rescale it")
        found[str(name)] = number
    return found


def _person_labels(record: Mapping[str, Any], scale: Scale | None) -> dict[str, float | None]:
    held = record.get("labels")
    if held is None:
        return {}
    if not isinstance(held, Mapping):
        raise RowError(f"'labels' is {held!r}, expected an object of labels by criterion")
    found = {}
    for name, value in held.items():
        label = said(f"labels.{name}", value, scale)
        if label.fault:
            raise RowError(label.fault)
        found[f"{BY_PEOPLE}{name}"] = label.value
    return found


def _check(path: Path, found: _Reading, keys: Keys, needed: bool) -> None:
    """Reject faulty lines, and rows that contradict each other."""
    faults = found.faults or [*_contradictions(found.rows)]
    if not faults and found.words and found.scores:
        faults = [
            f"line {found.scores}: '{keys.label}' is a score, expected a verdict as in line {found.words}; "
            f"a file must have one kind of label"
        ]
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise RowError(f"{path}: {'; '.join(faults[:_SHOWN])}{more}. Nothing was compared: correct the file")
    if needed and not found.rows:
        raise RowError(f"{path}: has no rows, expected dialogues with a person's '{keys.label}'")
    if needed and all(row["label"] is None for row in found.rows):
        raise RowError(f"{path}: no row has a '{keys.label}'; name the key or column of the labels with --label")


def _contradictions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List contradictions between two rows about one dialogue."""
    first: dict[str, Mapping[str, Any]] = {}
    faults = []
    for row in rows:
        before = first.setdefault(row["dialogue"], row)
        keys = [*_ONE_OF, *(key for key in {**before, **row} if key.startswith(SCORED))]
        other = next((key for key in keys if row.get(key) != before.get(key)), None)
        if other is not None:
            faults.append(
                f"line {row['line']}: '{other}' is {row.get(other)!r}, but {before.get(other)!r} in line "
                f"{before['line']}, which is about the same dialogue; make them agree, or change the dialogue's id"
            )
    scored = [any(key.startswith(SCORED) for key in row) for row in rows]
    if any(scored) and not all(scored):
        faults.append(f"line {rows[scored.index(False)]['line']}: has no scores, while other rows do; add or drop them")
    return faults


def _named(rows: Sequence[Mapping[str, Any]], prefix: str) -> tuple[str, ...]:
    names = dict.fromkeys(key for row in rows for key in row if key.startswith(prefix))
    return tuple(name.removeprefix(prefix) for name in names)


def _schema(dimensions: Sequence[str], graded: Sequence[str]) -> dict[str, Any]:
    texts = ("dialogue", "group", "bucket", "annotator", "model", "spec_sha256")
    numbers = ("label", *(f"{BY_PEOPLE}{name}" for name in graded), *(f"{SCORED}{name}" for name in dimensions))
    return {"line": pl.Int64, **dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Float64)}


def _text(value: object) -> str | None:
    """Return an id or a name as text; None if missing."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return str(value)
    return None


def _enforced(run: Run) -> bool:
    return run.config.pays_judged_score and GATE not in run.config.gates.waivers


LABELS = Given(
    "labels",
    # Only below the workspace: labels from another run do not belong to this one's judge.
    lambda run: str(run.workspace.path(run.config.judge.labels.path)),
    wanted=_enforced,
    made_by="the judge is uncalibrated until people have labelled dialogues; `rc1 label` asks for labels and writes it",
)
"""The label file that the gate `judge_agreement` reads and a ticket vouches for."""
