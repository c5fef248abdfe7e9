"""Show results in a notebook: a title, sentences and small tables, as text and as HTML without styles or scripts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from rc1_lib.check_words import figure

_SHOWN = 40
"""How many rows of a table are shown; the frame has the rest."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a notebook shows of a result.

    Attributes:
        title: the kind of result and its outcome.
        lines: sentences below it.
        tables: frames below these.
    """

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[pl.DataFrame] = ()

    def text(self) -> str:
        """Title and sentences, one per line."""
        return "\n".join((self.title, *self.lines))

    def html(self) -> str:
        """All parts, with every text escaped, since rows are untrusted."""
        lines = "".join(f"<p>{escape(line)}</p>" for line in self.lines)
        return f"<div><b>{escape(self.title)}</b>{lines}{''.join(map(_table, self.tables))}</div>"


class Shown(ABC):
    """A result that a notebook shows by its card."""

    __slots__ = ()

    @abstractmethod
    def card(self) -> Card:
        """Its card."""

    def __repr__(self) -> str:
        return self.card().text()

    def _repr_html_(self) -> str:
        return self.card().html()


def _table(frame: pl.DataFrame) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in frame.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(figure(value))}</td>' for value in row)}</tr>"
        for row in frame.head(_SHOWN).iter_rows()
    )
    more = f"<p>and {frame.height - _SHOWN} more rows</p>" if frame.height > _SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
