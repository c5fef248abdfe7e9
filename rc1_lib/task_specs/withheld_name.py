"""Withholds a name in the question itself, so that only asking reveals which one is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rc1_lib.records import Slot
from rc1_lib.task_specs.wording import occurrences, word_positions

_VAGUE = "a certain one"
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


def name_slot(names: Iterable[str], ask: str, lookups: Iterable[str]) -> Slot | None:
    """Return the first of `names` that occurs exactly once in `ask` (ignoring case) and in no listed title.

    An article before the name is removed too: "the Quran" becomes "a certain one", not "the a certain one".
    """
    shown = " | ".join(lookups).casefold()
    folded = ask.casefold()
    if len(folded) != len(ask):
        # Positions in the folded text can differ from those in the text itself (for example with "ß").
        return None
    for name in names:
        wanted = name.casefold()
        positions = word_positions(wanted, folded)
        if len(positions) != 1 or folded.count(wanted) != 1 or wanted in shown:
            continue
        article = _ARTICLE.search(ask[: positions[0]])
        start = article.start() if article else positions[0]
        value = ask[start : positions[0] + len(name)]
        if occurrences(value, ask) == 1 and _is_noun_phrase(ask, start, positions[0], positions[0] + len(name)):
            vague = _VAGUE.capitalize() if start == 0 else _VAGUE
            return Slot("ask", value, vague, f"which one is meant by '{_VAGUE}'")
    return None


def _is_noun_phrase(ask: str, start: int, at: int, end: int) -> bool:
    """Whether the name at `at` is a whole noun phrase and not part of one, as in "on a dodgeball team"."""
    indefinite = ask[start:at].strip().casefold() in {"a", "an"}
    if (ask[at].isupper() or ask[at].isdigit()) and not indefinite:
        return True
    begins = start < at or _BEFORE_PHRASE.search(ask[:at]) is not None
    return begins and _AFTER_PHRASE.match(ask, end) is not None
