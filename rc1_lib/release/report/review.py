"""The review of the nights as one page: the nightly's history in, one HTML file out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rc1_lib.errors import RC1Error
from rc1_lib.preflight.nights import NIGHTS, KeptNight, NightOutcome, parse_nights
from rc1_lib.release.report.book import Book
from rc1_lib.release.report.changes import Change, changes, day
from rc1_lib.release.report.course import courses, within
from rc1_lib.release.report.frame import Head, render
from rc1_lib.release.report.nights import changed, gates, history, traffic
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import write_text
from rc1_lib.workspace.file_hashes import sha256_file

PAGE = "reports/release/review.html"
_VERDICT = 400
"""Characters of a verdict at the top; it stands whole in the table of the nights."""


@dataclass(frozen=True, slots=True)
class Review:
    """A review that was written.

    Attributes:
        path: of the page, relative to the workspace.
        sha256: of its bytes.
        nights: those that it tells of, oldest first.
        changes: what is otherwise than it was, the most urgent first.
    """

    path: str
    sha256: str
    nights: tuple[KeptNight, ...]
    changes: tuple[Change, ...]


def write_review(run: Run, days: int) -> Review:
    """Write `reports/release/review.html` about the `days` days that end with the latest night.

    Raises:
        RC1Error: when no night was kept, or the history cannot be read.
    """
    book, path = Book(run), run.workspace.path(NIGHTS)
    source = book.read("nights", path, lambda content: parse_nights(content, str(path)))
    if source is None or not source.body:
        raise RC1Error(
            f"{path}: no night is in it yet, so there is nothing to review; rc1/nightly writes a line each night "
            f"(`rc1 serve`, then `prefect deployment run rc1/nightly` for one at once)"
        )
    shown, over = within(source.body, days), courses(source.body, days)
    found = changes(shown, over)
    head = Head(f"RC1 review, {day(shown[-1])}", "RC1 review", _red(shown[-1]), _facts(shown))
    parts = [changed(source, found), gates(source, shown, over), traffic(source, shown), history(source, shown)]
    text = render(
        "review.html.j2", PAGE, head, parts, book, count=len(shown),
        red_nights=[(day(night), night.outcome, _short(night.verdict)) for night in reversed(shown) if _red(night)],
    )  # fmt: skip
    write_text(run.workspace.path(PAGE), text)
    return Review(PAGE, sha256_file(run.workspace.path(PAGE)), tuple(shown), tuple(found))


def _red(night: KeptNight) -> bool:
    return night.outcome is not NightOutcome.GREEN


def _short(text: str) -> str:
    return text if len(text) <= _VERDICT else f"{text[:_VERDICT]} …"


def _facts(nights: Sequence[KeptNight]) -> list[tuple[str, object]]:
    return [
        ("nights", len(nights)),
        ("from", day(nights[0])),
        ("to", day(nights[-1])),
        ("green", sum(not _red(night) for night in nights)),
    ]
