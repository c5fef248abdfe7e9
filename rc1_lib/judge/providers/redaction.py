"""What a server said, made fit for logs and exceptions: one line, bounded, and without secrets."""

from __future__ import annotations

import re
from urllib.parse import quote

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.masking import HIDDEN, in_base64, mask, secrets

LONGEST = 300
_READ = 4000
"""Characters of a server's text that are looked at."""
_PIECE = 6
"""A run of the key of this length or longer is hidden, wherever it stands."""
_STARRED = re.compile(r"[\w.+/=\-]*[*•●]{3,}[\w.+/=\-]*")
_DOTTED = re.compile(r"([\w\-]*)(?:\.{3,}|…)([\w\-]*)")


class Redactor:
    """Hides the environment's secrets and one provider's key, also where a server quotes only a part of it."""

    def __init__(self, key: str | None) -> None:
        self._key = key or ""
        self._quoted = (self._key, *in_base64(self._key))
        own = (*secrets({KEY_VARIABLE: self._key}), quote(self._key, safe="")) if len(self._key) >= _PIECE else ()
        self._hidden = (*sorted(own, key=len, reverse=True), *secrets())

    def plain(self, text: str) -> str:
        """`text` with whole secrets hidden and nothing else changed."""
        return mask(text, self._hidden)

    def line(self, text: str, room: int = LONGEST) -> str:
        """`text` as one line of at most `room` characters, with secrets, and parts of the key, hidden."""
        text = " ".join("".join(c if c.isprintable() else " " for c in text[:_READ]).split())
        text = _STARRED.sub(HIDDEN, self._without_pieces(mask(text, self._hidden)))
        text = _DOTTED.sub(self._elided, text)
        return text if len(text) <= room else text[: max(0, room - 1)] + "…"

    def _without_pieces(self, text: str) -> str:
        kept: list[str] = []
        at = 0
        while at < len(text):
            end = at
            while end < len(text) and any(text[at : end + 1] in form for form in self._quoted):
                end += 1
            if end - at >= _PIECE:
                kept.append(HIDDEN)
                at = end
            else:
                kept.append(text[at])
                at += 1
        return "".join(kept)

    def _elided(self, found: re.Match[str]) -> str:
        """Hides `sk-a...wxyz`, leaves other dots alone."""
        before, after = found.groups()
        starts = len(before) >= 2 and self._key.startswith(before)
        ends = len(after) >= 2 and self._key.endswith(after)
        return HIDDEN if starts or ends else found.group()
