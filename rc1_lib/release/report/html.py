"""What every page of RC1 is made of: head, sections, pictures, tables, the files that it quotes; and its HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from rc1_lib.plots.page import Chart
from rc1_lib.records import Check
from rc1_lib.release.report.sources import Citation, Source, Sources, plain, said

if TYPE_CHECKING:
    from jinja2 import Template

Cell = str | Citation
FAILURE = "FAILED"
"""What a cell says in the colour of a failure."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to unfold; the first column names them."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    open: bool = False


def checks_table(
    title: str, source: Source, where: str, checks: Iterable[tuple[str, Check]], opened: bool = False
) -> Table:
    """Checks, each with what it is called, as a table with value, threshold and verdict; `where` they are."""
    rows = []
    for label, check in checks:
        compared = (f"{check.op} {said(check.threshold)}", "passed" if check.passed else FAILURE)
        if check.op == "info":
            compared = ("", "for information")
        rows.append((label, Citation(said(check.value), source, f"{where}: {label}"), *compared))
    return Table(title, ("check", "value", "wanted", "verdict"), rows, opened)


def figures_table(title: str, head: Sequence[str], source: Source, *places: Sequence[str]) -> Table:
    """A line for every name in the first place, with its figure and interval in each of the places."""
    rows = [
        (name.replace("_", " "), *(source.cite_interval(plain, *place, name) for place in places))
        for name in source.at(*places[0]) or ()
    ]
    return Table(title, head, rows)


@dataclass(frozen=True, slots=True)
class Text:
    """Something to read as it is, for example dialogues."""

    title: str
    body: str
    cited: Citation


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; without its source `lead` says so and there is nothing else in it."""

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


@dataclass(frozen=True, slots=True)
class Head:
    """The top of a page.

    Attributes:
        title: of the window.
        heading: of the page.
        failed: whether it says FAILED.
        facts: name and value of what identifies it.
    """

    title: str
    heading: str
    failed: bool
    facts: Sequence[tuple[str, object]]


def render(template: str, page: str, head: Head, sections: Sequence[Section], sources: Sources, **own: object) -> str:
    """A page as text.

    Args:
        template: the file, which extends `frame.html.j2`.
        page: where it will lie, relative to the workspace.
        head: its top.
        sections: its parts.
        sources: whose sources it lists.
        own: what its template takes as well.
    """
    return _template(template).render(
        title=head.title,
        heading=head.heading,
        failed=head.failed,
        facts=head.facts,
        sections=sections,
        sources=sorted(sources.by_name.values(), key=lambda source: source.path),
        style=Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8")),
        up="../" * page.count("/"),
        **own,
    )


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)
