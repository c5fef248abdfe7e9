"""The sources of a report: files, each read once, and numbers that remember where they come from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import orjson
from markupsafe import Markup
from pydantic import TypeAdapter

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION, TRAINING_REPORT
from rc1_lib.plots.page import Interval
from rc1_lib.preflight.ticket import TICKET
from rc1_lib.release.report.shapes import SHAPES, check_shape
from rc1_lib.run import Run
from rc1_lib.workspace.input_files import read_regular

UNDEFINED = "undefined"
Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read.

    Attributes:
        name: its name on the page.
        path: its path, relative to the workspace.
        sha256: SHA-256 of the bytes that the page quotes.
        size: its size in bytes.
        body: the parsed JSON; a list for JSON lines.
    """

    name: str
    path: str
    sha256: str
    size: int
    body: Any

    @property
    def anchor(self) -> str:
        """The anchor of its entry on the page."""
        return f"source-{self.name}"

    def at(self, *keys: str) -> Any:
        """Return the value at these keys; None if there is none."""
        found = self.body
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def cite(self, form: Format, *keys: str) -> Citation:
        """Return a number with its place in the file."""
        value = self.at(*keys)
        return Citation(shown(value, form), self, ".".join(keys))

    def cite_interval(self, form: Format, *keys: str) -> Citation:
        """Return a `{value, low, high}` as one number with its interval."""
        found = self.at(*keys)
        found = found if isinstance(found, Mapping) else {"value": found}
        low, high = (shown(found.get(end), form) for end in ("low", "high"))
        text = shown(found.get("value"), form)
        low, high = (end.partition("\u00a0")[0] for end in (low, high))  # show the unit once
        return Citation(text if UNDEFINED in (low, high) else f"{text} [{low}, {high}]", self, ".".join(keys))


@dataclass(frozen=True, slots=True)
class Citation:
    """A text that links to its source."""

    text: str
    source: Source
    where: str

    def __html__(self) -> str:
        return str(
            Markup('<a class="n" href="#{}" title="{} › {}">{}</a>').format(
                self.source.anchor, self.source.path, self.where, self.text
            )
        )


@dataclass(slots=True)
class Sources:
    """The files of one run that the page quotes, in the order in which they were read."""

    run: Run
    by_name: dict[str, Source] = field(default_factory=dict)

    def read(
        self,
        name: str,
        path: str | Path,
        shape: TypeAdapter[Any] | None = None,
    ) -> Source | None:
        """Read a file, as JSON, JSON lines (`.jsonl`) or text (`.md`); None if it does not exist.

        Args:
            name: its name on the page.
            path: its path; a string is relative to the workspace.
            shape: the expected form; default: the name's in `SHAPES`.

        Raises:
            RC1Error: when it cannot be read or has another form.
        """
        path = self.run.workspace.path(path) if isinstance(path, str) else path
        if name in self.by_name:
            return self.by_name[name]
        if not path.is_file():
            return None
        try:
            content = read_regular(path)
            body = _BY_SUFFIX.get(path.suffix, orjson.loads)(content)
        except (OSError, ValueError) as error:
            raise RC1Error(f"{path}: cannot be read for the report ({error}); write it again or move it away") from None
        if (shape := shape or SHAPES.get(name)) is not None:
            check_shape(shape, body, path)
        found = Source(name, self.run.workspace.name(path), hashlib.sha256(content).hexdigest(), len(content), body)
        self.by_name[name] = found
        return found

    def training(self) -> Source | None:
        """Return the report of the latest training."""
        return self.read("training", TRAINING_REPORT)

    def evaluation(self) -> Source | None:
        """Return the evaluation that the training's report names."""
        training = self.training()
        named = training is not None and isinstance(training.at("evaluation"), str)
        return self.read("evaluation", EVALUATION.path(self.run)) if named else None

    def ticket(self) -> Source | None:
        """Return the ticket, valid or not."""
        return self.read("ticket", TICKET)


_BY_SUFFIX: Mapping[str, Callable[[bytes], Any]] = {
    ".jsonl": lambda content: [orjson.loads(line) for line in content.splitlines()],
    ".md": lambda content: content.decode("utf-8", "replace"),
}


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def shown(value: object, form: Format) -> str:
    """Format a number; anything else is "undefined"."""
    return form(value).replace("-", "−") if is_number(value) else UNDEFINED


def percent(value: float) -> str:
    """Format a share in percent."""
    return f"{100 * value:.1f}\u00a0%"


def points(value: float) -> str:
    """Format a difference of two shares, given in percentage points."""
    return f"{value:+.1f}\u00a0pp"


def plain(value: float) -> str:
    """Format any number."""
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"


def two(value: float) -> str:
    """Format with two decimals."""
    return f"{value:.2f}"


def three(value: float) -> str:
    """Format with three significant digits."""
    return f"{value:.3g}"


def dollars(value: float) -> str:
    """Format an amount in USD."""
    return f"${value:,.2f}"


def said(value: Any) -> str:
    """Format a value or a threshold of a check."""
    if isinstance(value, list):
        return " to ".join(map(said, value))
    if value is None:
        return UNDEFINED
    return f"{value:,.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def interval(found: Mapping[str, Any]) -> Interval | None:
    """Return a `{value, low, high}` as a tuple; None if the value is undefined."""
    value, low, high = (float(one) if is_number(one := found.get(key)) else None for key in ("value", "low", "high"))
    return None if value is None else (value, low, high)
