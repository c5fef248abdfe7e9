"""Caches of limited size, since a run may last for weeks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, wraps
from typing import Generic, TypeVar

Found = TypeVar("Found")

SHORT_CHARS = 1000
"""Maximum length, in characters, of a text whose result is cached; many long texts could fill the memory."""


def of_short_texts(most: int) -> Callable[[Callable[[str], Found]], Callable[[str], Found]]:
    """Cache a function of a text: the same page occurs in every dialogue about a prompt.

    Args:
        most: number of texts, each of at most `SHORT_CHARS`, whose results are cached. Results must not be modified.
    """

    def keeping(find: Callable[[str], Found]) -> Callable[[str], Found]:
        kept = lru_cache(maxsize=most)(find)

        @wraps(find)
        def found(text: str) -> Found:
            return kept(text) if len(text) <= SHORT_CHARS else find(text)

        return found

    return keeping


class Memo(Generic[Found]):
    """Caches results by a fingerprint of their inputs; when full, it drops the least recently used one.

    Threads may share it: at worst a result is computed twice.
    """

    def __init__(self, most: int) -> None:
        """Keep at most `most` results."""
        assert most >= 1
        self._most = most
        self._found: OrderedDict[bytes, Found] = OrderedDict()

    def __len__(self) -> int:
        """The number of results."""
        return len(self._found)

    def get(self, key: bytes, find: Callable[[], Found]) -> Found:
        """Return the result for `key`, computed by `find` if missing."""
        found = self._found.pop(key, None)
        if found is None:
            found = find()
        self._found[key] = found
        while len(self._found) > self._most:
            self._found.popitem(last=False)
        return found

    def get_all(self, keys: Sequence[bytes], find: Callable[[list[int]], Sequence[Found]]) -> list[Found]:
        """Return the result for each key; `find` gets the indices of all missing ones at once."""
        known = {place: found for place, key in enumerate(keys) if (found := self._found.get(key)) is not None}
        unknown = [place for place in range(len(keys)) if place not in known]
        if unknown:
            known |= zip(unknown, find(unknown), strict=True)
        return [self.get(key, partial(known.__getitem__, place)) for place, key in enumerate(keys)]
