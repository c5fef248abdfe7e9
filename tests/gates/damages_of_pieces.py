"""Damage to what is missing in a row: six kinds, each of which the gate `missing_piece` is meant for.

They change only what the row's format names (`slot`, `posed`, `passages`, `user_replies`), so they fit every source.
"""

from __future__ import annotations

from typing import Any, cast

from rc1_lib import records
from rc1_lib.gates.missing_piece import as_seen
from rc1_lib.rows.closure import closure
from rc1_lib.sources.solvers import solver_of
from tests.gates.damages import Damage, Row, damages_of, one, reply


def needing(row: Row, way: str) -> bool:
    """Return whether a name is missing in this way."""
    if not row["needs_clarification"] or not row.get("slot") or row["asked"]:
        return False
    return (row["slot"].get("way") or "gone") == way and not any(mark.isdigit() for mark in row["slot"]["value"])


def gone(row: Row) -> bool:
    return needing(row, "gone")


def list_the_title(row: Row) -> None:
    """List a page that is called as the withheld piece."""
    value = row["slot"]["value"]
    row["posed"]["listed"].append(value)
    row["messages"][1]["content"] += f" {value}"


def filled(row: Row) -> str:
    """Return the sentence that the piece is missing in, with the piece."""
    slot: Row = row["slot"]
    texts = (*row["support"], *(page["text"] for page in row["passages"]), row["posed"]["ask"])
    with_gap = next(text for text in texts if slot["vague"] in text)
    return str(with_gap.replace(slot["vague"], slot["value"]))


def quote_the_fact(row: Row) -> None:
    text = filled(row)
    row["posed"]["quoted"].append(text)
    row["messages"][1]["content"] = f"{text} {row['messages'][1]['content']}"


def put_on_a_page(row: Row) -> None:
    """Tell the withheld fact on a page that can be reached; if none can, list one."""
    pages = [page for page in row["passages"] if page["title"] in closure(cast(records.Row, row)).pages]
    if not pages:
        pages = row["passages"]
        row["messages"][1]["content"] += f" {pages[0]['title']}"
    pages[0]["text"] += f" {filled(row)}"


def without_its_twin(row: Row, solver: Any = None) -> Row | None:
    """Return the row without one page, so that only one thing fits the description; None if no page does that."""
    solver = solver or solver_of(cast(records.Row, row))
    for page in row["passages"]:
        less = cast(records.Row, {**row, "passages": [other for other in row["passages"] if other is not page]})
        reach = closure(less)
        possible = solver(as_seen(less, reach), reach) if solver else None
        if possible is not None and len(possible) == 1:
            return cast(Row, less)
    return None


def unique(row: Row) -> bool:
    return needing(row, "ambiguous") and without_its_twin(row) is not None


def make_unique(row: Row) -> None:
    row.update(without_its_twin(row) or {})


def mark_as_needing(row: Row) -> None:
    """Say of a complete row that something is missing, and of its right answer that it was lucky."""
    row.update(
        needs_clarification=True, solved=False, lucky=True,
        slot={"where": "ask", "value": "Xyloquar", "vague": "that", "wanted": "which one you mean", "way": "ambiguous"},
        user_replies={"gives": "It is Xyloquar.", "otherwise": row["user_replies"]["otherwise"]},
    )  # fmt: skip


def complete(row: Row) -> bool:
    return bool(row["solved"] and not row["needs_clarification"] and row["asked"] == 0)


OF_PIECES: list[Damage] = damages_of(["missing_piece"], {
    "the withheld title listed": one(gone, list_the_title),
    "the withheld fact quoted": one(gone, quote_the_fact),
    "an ambiguous description that fits one thing only": one(unique, make_unique),
    "the withheld fact on a page that can be reached": one(gone, put_on_a_page),
    "a complete row marked as needing": one(complete, mark_as_needing),
    "a reply that says nothing": one(gone, lambda row: reply(row).update(gives="Just as I said.")),
}, {
    "the withheld title listed": ["consistency"],
    "the withheld fact quoted": ["consistency"],
    "an ambiguous description that fits one thing only": ["consistency"],
    "the withheld fact on a page that can be reached": ["consistency"],
    "a complete row marked as needing": ["consistency"],
    "a reply that says nothing": ["consistency"],
})  # fmt: skip
"""What is missing is not, or something else is."""
