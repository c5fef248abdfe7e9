"""Withholds a name in the question itself, so that only asking reveals which one is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from rc1_lib.records import Passage, Slot
from rc1_lib.task_specs.reach import folded, reachable
from rc1_lib.task_specs.wording import occurrences, word_positions

_VAGUE = "a certain one"
_VERDICTS = ("yes", "no")
_ANY_OF = re.compile(r"\b(?:both|either|neither|all|any)\b", re.IGNORECASE)
_LEADING_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)
_REMARK = re.compile(r"\s*\([^()]*\)$")
_NAME_WORD = re.compile(r"[^\W\d_]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\s+$", re.IGNORECASE)

_BEFORE_PHRASE = re.compile(
    r"\b(?:and|or|in|on|at|of|to|by|for|from|with|without|than|as|is|are|was|were|does|do|did|can|could|would|will|about|"
    r"during|after|before|into|like|through|against)\s+$",
    re.IGNORECASE,
)
_AFTER_PHRASE = re.compile(
    r"\W*$|[,?.;:]|['’]s\b|\s+(?:and|or|in|on|at|of|to|by|for|from|with|without|than|as|that|who|which|if|when|while|during|"
    r"after|before|be|been|is|are|was|were|have|has|had|can|could|would|ever|also|not)\b"
)


def name_slot(
    names: Iterable[str], ask: str, passages: Sequence[Passage], needed: Iterable[str], answer: str
) -> tuple[Slot | None, str]:
    """Choose the first of `names` that can be withheld so that it is gone, and the answer with it.

    Whatever pages a prompt lists and borrows: no page that can be reached names it or tells the answer, the rest of the
    question does not, and with the name the user's reply leads to every needed page. Pages that would give it away are
    hidden. An article before the name is removed too: "the Quran" becomes "a certain one", not "the a certain one".

    Args:
        names: what could be withheld, the best first.
        needed: the titles of the pages that must be read.

    Returns:
        The slot and an empty text, or None and the reason, which a source counts.
    """
    why = "nothing can be withheld: no name stands in the question once, as a noun phrase"
    for name in names:
        slot = _phrase(name, ask)
        if slot is None:
            continue
        hides, why = _hidden(slot, name, ask, passages, set(needed), answer)
        if not why:
            return replace(slot, hides=hides), ""
    return None, why


def bare_name(name: str) -> str:
    """Return a name without its article and without a remark in brackets: `The Quran (book)` is named `Quran`."""
    return _REMARK.sub("", _LEADING_ARTICLE.sub("", name)).strip() or name


def names_it(name: str, text: str) -> bool:
    """Return whether `text` contains `name` as whole words, in any case; Chinese names need no edges."""
    wanted, read = folded(name), folded(text)
    at = read.find(wanted)
    while at >= 0 and wanted:
        end = at + len(wanted)
        if not (_joined(read[at - 1 : at], wanted[0]) or _joined(wanted[-1], read[end : end + 1])):
            return True
        at = read.find(wanted, at + 1)
    return False


def gives_away(name: str, text: str) -> bool:
    """Return whether `text` names `name`, or has a distinctive word of it ("Clarkson" of "Kelly Clarkson")."""
    words = [word for word in _NAME_WORD.findall(bare_name(name)) if len(word) > 3 and word[0].isupper()]
    return names_it(bare_name(name), text) or any(occurrences(word, text) for word in words)


def _phrase(name: str, ask: str) -> Slot | None:
    """Return the slot if the name occurs exactly once in the question (in any case), as a whole noun phrase."""
    wanted, text = name.casefold(), ask.casefold()
    # Positions in the folded text can differ from those in the text itself (for example with "ß").
    positions = word_positions(wanted, text) if len(text) == len(ask) else []
    if len(positions) != 1 or text.count(wanted) != 1:
        return None
    article = _ARTICLE.search(ask[: positions[0]])
    start, end = article.start() if article else positions[0], positions[0] + len(name)
    value = ask[start:end]
    if occurrences(value, ask) != 1 or not _is_noun_phrase(ask, start, positions[0], end):
        return None
    vague = _VAGUE.capitalize() if start == 0 else _VAGUE
    return Slot("ask", value, vague, f"which one is meant by '{_VAGUE}'")


def _hidden(
    slot: Slot, name: str, ask: str, passages: Sequence[Passage], needed: Set[str], answer: str
) -> tuple[tuple[str, ...], str]:
    """Return the titles to hide and an empty text, or none and why the name cannot be withheld."""
    rest = ask.replace(slot.value, slot.vague)
    told = "" if answer.casefold() in _VERDICTS else answer
    if not told and _ANY_OF.search(rest):
        return (), "nothing can be withheld: the other names of the question may settle it alone"
    if gives_away(name, rest):
        return (), "nothing can be withheld: the question names it in other words too"
    if told and names_it(told, rest):
        return (), "nothing can be withheld: the question names the answer"
    pages = {page.title: page.text for page in passages}
    hidden = {
        title
        for title, text in pages.items()
        if gives_away(name, f"{title}\n{text}") or (told and names_it(told, f"{title}\n{text}"))
    }
    # A page that names a hidden one leads to it.
    while leading := {title for title in pages.keys() - hidden if reachable([title, pages[title]], pages) & hidden}:
        hidden |= leading
    listed = [title for title in pages if title not in hidden]
    if reachable([rest, *listed], pages) & hidden:
        return (), "nothing can be withheld: a page that can be reached gives it away"
    if not needed & hidden:
        return (), "nothing can be withheld: no needed page is about it"
    if needed - reachable([rest, *listed, slot.value], pages):
        return (), "nothing can be withheld: the name alone does not lead to the needed pages"
    return tuple(title for title in pages if title in hidden), ""


def _joined(before: str, after: str) -> bool:
    """Return whether two characters belong to one word; Han characters each stand alone."""
    return all(mark and (mark.isalnum() or mark == "_") and mark < "\u2e80" for mark in (before, after))


def _is_noun_phrase(ask: str, start: int, at: int, end: int) -> bool:
    """Whether the name at `at` is a whole noun phrase and not part of one, as in "on a dodgeball team"."""
    indefinite = ask[start:at].strip().casefold() in {"a", "an"}
    if (ask[at].isupper() or ask[at].isdigit()) and not indefinite:
        return True
    begins = start < at or _BEFORE_PHRASE.search(ask[:at]) is not None
    return begins and _AFTER_PHRASE.match(ask, end) is not None
