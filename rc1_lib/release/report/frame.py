"""What every page of RC1 stands in: head, sections with pictures and tables, and the files that it was read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from rc1_lib.release.report.book import Book
from rc1_lib.release.report.parts import Section

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True, slots=True)
class Head:
    """The top of a page.

    Attributes:
        title: of the window.
        heading: of the page.
        red: whether it says RED.
        facts: name and value of what identifies it.
    """

    title: str
    heading: str
    red: bool
    facts: Sequence[tuple[str, object]]


def render(template: str, page: str, head: Head, sections: Sequence[Section], book: Book, **own: object) -> str:
    """A page as text.

    Args:
        template: the file, which extends `frame.html.j2`.
        page: where it will lie, relative to the workspace.
        head: its top.
        sections: its parts.
        book: whose sources it lists.
        own: what its template takes beside these.
    """
    return _template(template).render(
        title=head.title,
        heading=head.heading,
        red=head.red,
        facts=head.facts,
        sections=sections,
        sources=sorted(book.sources.values(), key=lambda source: source.path),
        style=Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8")),
        up="../" * page.count("/"),
        **own,
    )


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)
