"""What a page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rc1_lib.release.report.book import Cited
from rc1_lib.release.report.charts import Chart

Cell = str | Cited


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to unfold; the first column names them."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Something to read as it is, for example dialogues."""

    title: str
    body: str
    cited: Cited


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; without its source `lead` says so and nothing else stands in it."""

    key: str
    title: str
    lead: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    texts: Sequence[Text] = ()


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure before and after, at the top of the page."""

    label: str
    before: Cell
    after: Cell
    change: Cell
    passed: bool | None = None
