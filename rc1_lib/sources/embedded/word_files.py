"""Read the embedded source's words from YAML files below `words/`, and check every key and slot.

A slot is a name in braces that a text will replace. Which slots a sentence must have depends on its key, so the caller
walks through the file and states what it expects at each place.
"""

from __future__ import annotations

import difflib
import string
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from rc1_lib.config.strict_yaml import fault_line, parse_yaml
from rc1_lib.errors import SourceError

FOLDER = Path(__file__).parent / "words"
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in a word file: its value and its position, so that an error can name it."""

    file: Path
    place: str
    value: object

    def keys(self) -> tuple[str, ...]:
        """Return the keys of this mapping, in order."""
        return tuple(self._mapping())

    def fields(self, needed: Iterable[str], optional: Collection[str] = ()) -> dict[str, Entry]:
        """Return the entries of this mapping by key, in the file's order; rejects missing and unknown keys."""
        found, needed = self._mapping(), tuple(needed)
        for key in found:
            if key not in needed and key not in optional:
                known = (*needed, *optional)
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"known keys are {', '.join(known) or 'none'}"
                raise SourceError(f"{self.file}: unknown key '{self._below(key)}'; {hint}")
        for key in needed:
            if key not in found:
                raise SourceError(f"{self.file}: the key '{self._below(key)}' is missing; add it")
        return {key: Entry(self.file, self._below(key), value) for key, value in found.items()}

    def items(self) -> tuple[Entry, ...]:
        """Return the entries of this list, at least one."""
        if not isinstance(self.value, list) or not self.value:
            raise self.fault("a list with at least one entry")
        return tuple(
            Entry(self.file, f"{self.place}[{number}]", item) for number, item in enumerate(self.value, start=1)
        )

    def text(self, slots: Iterable[str] = (), may: Collection[str] = ()) -> str:
        """Return the text, which must have each of `slots` exactly once and may have those of `may`, but no others."""
        if not isinstance(self.value, str):
            raise self.fault("text (put it in quotes if YAML takes it for something else)")
        found, needed = slots_of(self), tuple(slots)
        if any(found.count(slot) != 1 for slot in needed) or not set(found) <= {*needed, *may}:
            rule = f"text with {braced(needed)} once" if needed else "text"
            if may:
                rule += f"{' and' if needed else ' with'} no other slots except {braced(may)}"
            else:
                rule += " and no other slot" if needed else " without slots"
            raise self.fault(rule)
        return self.value

    def texts(self, slots: Iterable[str] = (), may: Collection[str] = ()) -> tuple[str, ...]:
        """Return the texts of this list; each must satisfy `text`, and none may be empty or repeated."""
        needed = tuple(slots)
        found = tuple(item.text(needed, may) for item in self.items())
        for number, text in enumerate(found):
            if not text:
                raise self.items()[number].fault("text that is not empty")
            if text in found[:number]:
                raise SourceError(f"{self.file}: the key '{self.place}' holds {text!r} twice; remove one of them")
        return found

    def number(self) -> int:
        """Return the integer."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.fault("a whole number")
        return self.value

    def flag(self) -> bool:
        """Return the Boolean."""
        if not isinstance(self.value, bool):
            raise self.fault("true or false")
        return self.value

    def one_of(self, options: Collection[str]) -> str:
        """Return the text, which must be one of `options`."""
        if self.text() not in options:
            raise self.fault(f"one of {', '.join(options)}")
        return self.text()

    def fault(self, expected: str) -> SourceError:
        """Return the error that something else than `expected` was found."""
        shown = repr(self.value)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        place = f"the key '{self.place}' holds" if self.place else "holds"
        return SourceError(f"{self.file}: {place} {shown}; expected {expected}")

    def _mapping(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            raise self.fault("a mapping of keys to values")
        for key in self.value:
            if not isinstance(key, str):
                place = f" below '{self.place}'" if self.place else ""
                raise SourceError(f"{self.file}: the key {key!r}{place} is not text; put it in quotes")
        return self.value

    def _below(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def slots_of(entry: Entry) -> list[str]:
    """Return the slots of the text at `entry`, in order.

    Raises:
        SourceError: when a brace is unmatched, or a slot has a format or a conversion.
    """
    try:
        parts = list(string.Formatter().parse(str(entry.value)))
    except ValueError as error:
        raise entry.fault(f"matched braces ({error})") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise entry.fault("plain slots without ':' or '!'")
    return [slot for _, slot, _, _ in parts if slot is not None]


def open_words(name: str) -> Entry:
    """Read the file `words/<name>.yaml`.

    Raises:
        SourceError: when it is missing, not UTF-8, not YAML, or repeats a key.
    """
    path = FOLDER / f"{name}.yaml"
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}); put the file back") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except yaml.YAMLError as error:
        line = fault_line(error)
        raise SourceError(f"{path}:{line} not YAML ({getattr(error, 'problem', error)}); correct the file") from None
    return Entry(path, "", content)


def braced(slots: Iterable[str]) -> str:
    """Return slots as they appear in a text."""
    return ", ".join(f"{{{slot}}}" for slot in slots)
