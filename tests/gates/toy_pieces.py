"""Rows about who wrote a book, and an exact solver for them: what the tests of `missing_piece` judge."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from rc1_lib import records
from rc1_lib.rows.closure import Closure
from rc1_lib.rows.frame import ROW_COLUMNS

Row = dict[str, Any]
PAGES = {
    "Dronor": "Dronor is kept in Gruzel. The writer of Dronor is Prahule.",
    "Fenlo": "Fenlo is kept in Gruzel. The writer of Fenlo is Tamrin.",
    "Oskar": "Oskar is kept in Belmere. The writer of Oskar is Ulwin.",
}


def solver(row: records.Row, reach: Closure) -> frozenset[str] | None:
    """Return who may have written the book that the question names or describes."""
    told = "\n".join((reach.prompt, *reach.pages.values()))
    writers = dict(re.findall(r"The writer of (\w+) is ([A-Z]\w+)", told))
    kept = re.findall(r"(\w+) is kept in (\w+)", told)
    reply = re.search(r"It is (\w+)", reach.reply or "")
    named = re.search(r"the book ([A-Z]\w+)", row["posed"]["ask"])
    town = row["posed"]["ask"].rstrip("?").split()[-1]
    books = [named[1]] if named else list(dict.fromkeys(book for book, place in kept if place == town))
    said = reply[1] if reply else None
    books = [said] if said in books else books
    found = {writers.get(book, None if said in books else said) for book in books}
    return None if None in found or not found else frozenset(str(writer) for writer in found)


def row(number: int, kind: str) -> Row:
    """Return a row that is `complete`, `gone` or `ambiguous`; every number gives another prompt."""
    pages, listed, slot, gives = dict(PAGES), ["Dronor", "Fenlo"], None, None
    ask = f"Case {number}: who wrote the book Dronor of Gruzel?"
    answer = "Prahule"
    if kind == "gone":
        answer = f"Prahule{'abcdefgh'[number % 8]}"
        pages["Dronor"] = "Dronor is kept in Gruzel. The writer of Dronor is somebody."
        slot = {"where": "story", "value": answer, "vague": "somebody", "wanted": "who wrote it", "way": "gone"}
    elif kind == "ambiguous":
        ask = ask.replace("Dronor", "in question")
        answer = ("Prahule", "Tamrin")[number % 2]
        name = ("Dronor", "Fenlo")[number % 2]
        slot = {"where": "ask", "value": name, "vague": "in question", "wanted": "which book", "way": "ambiguous"}
    if slot:
        gives = f"It is {slot['value']}."
    final = "nobody" if slot else answer
    return {
        "id": f"{kind}-{number}", "task": "hotpotqa", "split": "pool", "source": "toy", "source_id": f"{kind}/{number}",
        "lang": "en", "template_id": "t", "role": "r", "style": "s", "answer": answer, "aliases": [],
        "messages": [
            {"role": "system", "content": "Look things up."},
            {"role": "user", "content": f"Read {', '.join(listed)}. {ask}"},
            {"role": "assistant", "content": f"Answer: {final}"},
        ],
        "posed": {"ask": ask, "quoted": [], "listed": listed, "reason": ""},
        "question": ask, "support": [pages["Dronor"]], "slot": slot,
        "passages": [{"title": title, "text": text} for title, text in pages.items()],
        "user_replies": {"gives": gives, "otherwise": "I do not know."},
        "needs_clarification": slot is not None, "asked": 0, "final": final, "solved": not slot, "lucky": False,
    }  # fmt: skip


def rows() -> list[Row]:
    """Return sixty rows, of each kind twenty."""
    return [row(number, kind) for number in range(20) for kind in ("complete", "gone", "ambiguous")]


def frame(lines: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(lines, schema=pl.Schema(ROW_COLUMNS))
