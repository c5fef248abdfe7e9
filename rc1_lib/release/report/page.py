"""The page as a whole: a run's files in, one HTML file and a picture for each slide out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from rc1_lib.artifacts import atomic_write, sha256_file, write_text
from rc1_lib.preflight.ticket import TICKET
from rc1_lib.release.report.book import Book
from rc1_lib.release.report.data import data
from rc1_lib.release.report.gates import Standing, gates, standing
from rc1_lib.release.report.parts import Section
from rc1_lib.release.report.policy import evaluation_of, policy, tiles, training
from rc1_lib.release.report.reward import attacks, judge, reward
from rc1_lib.run import Run

if TYPE_CHECKING:
    from jinja2 import Template

FOLDER = "reports/release"
PAGE = f"{FOLDER}/report.html"
SLIDES = f"{FOLDER}/slides"


@dataclass(frozen=True, slots=True)
class Page:
    """A report that was written.

    Attributes:
        path: of the page, relative to the workspace.
        sha256: of its bytes.
        slides: the pictures, relative to the workspace.
        red: why the run is red; none: it is green.
    """

    path: str
    sha256: str
    slides: tuple[str, ...]
    red: tuple[str, ...]


def write_page(run: Run) -> Page:
    """Write `reports/release/report.html` and the slides' pictures, of a green run or a red one.

    Raises:
        RC1Error: when a file that is there cannot be read.
    """
    book = Book(run)
    stands = standing(book)
    parts = [policy(book), training(book), reward(book), attacks(book), judge(book), data(book), gates(book)]
    slides = []
    for chart in (chart for part in parts for chart in part.charts):
        slides.append(f"{SLIDES}/{chart.name}.png")
        with atomic_write(run.workspace.path(slides[-1])) as stream:
            stream.write(chart.png)
    write_text(run.workspace.path(PAGE), _render(book, stands, parts))
    return Page(PAGE, sha256_file(run.workspace.path(PAGE)), tuple(slides), tuple(stands.reasons))


def _render(book: Book, stands: Standing, parts: list[Section]) -> str:
    return _template().render(
        key=(evaluation.at("key") if (evaluation := evaluation_of(book)) else "without an evaluation"),
        standing=stands,
        facts=_facts(book),
        tiles=tiles(book),
        sections=parts,
        sources=sorted(book.sources.values(), key=lambda source: source.path),
        style=Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8")),
        up="../" * (PAGE.count("/")),
    )


def _facts(book: Book) -> list[tuple[str, object]]:
    """What identifies the run; of the ticket what it says, not whether it holds at some time."""
    config, ticket = book.run.config, book.read("ticket", book.run.workspace.path(TICKET))
    facts: list[tuple[str, object]] = [
        ("profile", config.profile),
        ("base", config.base_model),
        ("steps", f"{config.steps:,}"),
    ]
    if ticket is not None:
        facts += [("commit", str(ticket.at("commit") or "unknown")[:12])]
        facts += [("ticket issued", ticket.at("issued")), ("expires", ticket.at("expires"))]
    return facts


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("page.html.j2")
