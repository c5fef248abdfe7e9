"""Minimal synthetic data, so that the small configuration runs at once: sums, places, and questions to ask back.

They teach little. Their file name distinguishes them from real data: RC1 writes only files named `*_min.jsonl`.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import orjson

from rc1_lib.errors import SourceError
from rc1_lib.workspace.artifacts import atomic_write

SUFFIX = "_min.jsonl"
_PEOPLE = ("Mira", "Tom", "Ines", "Juri", "Ada", "Noor")
_THINGS = ("lamp", "kite", "violin", "ladder", "teapot")
_PLACES = ("attic", "cellar", "garden", "kitchen")
_OPEN = (
    ("How far is it to {}?", "From where do you start?"),
    ("When does the train to {} leave?", "On which day do you want to travel?"),
    ("Is {} larger than the other town?", "Which other town do you mean?"),
)
_TOWNS = ("Ulmen", "Harfeld", "Soria", "Brenk", "Talvik", "Osmond", "Pereva", "Linz", "Varnes", "Dorum")


def ensure_rows(path: Path, evaluation: bool) -> bool:
    """Write synthetic rows to `path` if it is missing and its name allows it.

    Args:
        evaluation: write the rows of the evaluation (at least 30) instead of those of the training (at least 100). No
            row is in both.

    Returns:
        Whether rows were written.

    Raises:
        SourceError: if the file is missing and its name does not allow synthetic rows.
    """
    if path.exists():
        return False
    if not path.name.endswith(SUFFIX):
        raise SourceError(
            f"{path}: file not found. Give JSONL rows with input, output and meta, or name it *{SUFFIX} to get "
            "synthetic minimal data"
        )
    with atomic_write(path) as stream:
        for number, row in enumerate(_rows()):
            if (number % 4 == 3) is evaluation:
                stream.write(orjson.dumps(row) + b"\n")
    return True


def _rows() -> list[dict[str, object]]:
    """Return all rows; a quarter of each kind is for the evaluation."""
    found = [_row(f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}.", "sum") for a, b in _pairs()]
    for index, (person, thing) in enumerate(itertools.product(_PEOPLE, _THINGS)):
        first, second = _PLACES[index % 4], _PLACES[(index + 1 + index // 4 % 3) % 4]
        shown = f"{person} put the {thing} into the {first} and then carried it to the {second}. Where is the {thing}?"
        found.append(_row(shown, f"The {thing} is in the {second}.", "place"))
    found += [_row(question.format(town), back, "ask") for (question, back), town in itertools.product(_OPEN, _TOWNS)]
    return found


def _pairs() -> list[tuple[int, int]]:
    return [(a, b) for a in range(2, 21, 2) for b in range(3, 20, 2)]


def _row(text: str, answer: str, kind: str) -> dict[str, object]:
    return {"input": text, "output": answer, "meta": {"kind": kind, "made_up": True}}
