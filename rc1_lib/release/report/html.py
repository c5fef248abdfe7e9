"""The parts of RC1's pages - head, sections, pictures, tables, quoted files - and their HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
"""The text of a cell that is shown in the colour of a failure."""


@dataclass(frozen=True, slots=True)
class Table:
    """A collapsible table; the first column names the rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    open: bool = False


def checks_table(
    title: str, source: Source, where: str, checks: Iterable[tuple[str, Check]], opened: bool = False
) -> Table:
    """Return a table of labelled checks with value, threshold and verdict; `where` is their place in the source."""
    rows = []
    for label, check in checks:
        compared = (f"{check.op} {said(check.threshold)}", "passed" if check.passed else FAILURE)
        if check.op == "info":
            compared = ("", "for information")
        rows.append((label, Citation(said(check.value), source, f"{where}: {label}"), *compared))
    return Table(title, ("check", "value", "wanted", "verdict"), rows, opened)


def figures_table(
    title: str, head: Sequence[str], source: Source, *places: Sequence[str], words: Mapping[str, str] | None = None
) -> Table:
    """Return a table with a line for every name at the first of `places`, with its figure and interval at each.

    `words` has what people read for names that do not explain themselves.
    """
    rows = [
        (
            (words or {}).get(name, name.replace("_", " ")),
            *(source.cite_interval(plain, *place, name) for place in places),
        )
        for name in source.at(*places[0]) or ()
    ]
    return Table(title, head, rows)


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is shown unchanged, for example dialogues."""

    title: str
    body: str
    cited: Citation


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; if its source is missing, only `lead` is there, which says so."""

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
        title: the title of the window.
        heading: the heading of the page.
        failed: whether it says FAILED.
        facts: name and value of facts that identify the run.
    """

    title: str
    heading: str
    failed: bool
    facts: Sequence[tuple[str, object]]


def render(template: str, page: str, head: Head, sections: Sequence[Section], sources: Sources, **own: object) -> str:
    """Return a page as HTML.

    Args:
        template: the template's file, which extends `frame.html.j2`.
        page: the page's path, relative to the workspace.
        head: its top.
        sections: its parts.
        sources: the sources that it lists.
        own: further variables of the template.
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
