"""Which pages a reader can open: those whose titles the reader has seen, and from each of them the pages it names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping


def reachable(texts: Iterable[str], pages: Mapping[str, str]) -> set[str]:
    """Return the titles of `pages` that a reader of `texts` can open, directly or from page to page.

    Titles need not stand alone: a title inside a longer word counts too.

    Args:
        texts: what the reader has read.
    """
    left = {title: folded(title) for title in pages}
    opened: set[str] = set()
    unread = list(texts)
    while unread and left:
        read = folded(unread.pop())
        named = [title for title, wanted in left.items() if wanted in read]
        for title in named:
            del left[title]
            unread.append(pages[title])
        opened.update(named)
    return opened


def folded(text: str) -> str:
    """Return `text` without regard to case, spacing and compatibility forms, as the tool `wiki` compares titles."""
    normal = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(normal.casefold().split())
