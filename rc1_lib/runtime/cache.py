"""What was found before, so that it is not worked out again: the newest of it, since a run may go on for weeks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, wraps
from typing import Generic, TypeVar

Found = TypeVar("Found")

SHORT_CHARS = 1000
"""Characters of the longest text that something is kept of: so many texts of any length could fill the memory."""


def of_short_texts(most: int) -> Callable[[Callable[[str], Found]], Callable[[str], Found]]:
    """Make a function of a text keep what it finds: the same page comes again in every dialogue about a prompt.

    Args:
        most: texts, none longer than `SHORT_CHARS`, of which it is kept. What is found must not be altered.
    """

    def keeping(find: Callable[[str], Found]) -> Callable[[str], Found]:
        kept = lru_cache(maxsize=most)(find)

        @wraps(find)
        def found(text: str) -> Found:
            return kept(text) if len(text) <= SHORT_CHARS else find(text)

        return found

    return keeping


class Memo(Generic[Found]):
    """Findings by a fingerprint of all that decides them; where there are too many, the one not asked for longest goes.

    Threads may share it: at worst something is worked out twice.
    """

    def __init__(self, most: int) -> None:
        """Hold no more than `most` findings."""
        assert most >= 1
        self._most = most
        self._found: OrderedDict[bytes, Found] = OrderedDict()

    def __len__(self) -> int:
        """How many findings it holds."""
        return len(self._found)

    def get(self, key: bytes, find: Callable[[], Found]) -> Found:
        """What was found under `key`, else what `find` finds now."""
        found = self._found.pop(key, None)
        if found is None:
            found = find()
        self._found[key] = found
        while len(self._found) > self._most:
            self._found.popitem(last=False)
        return found

    def get_all(self, keys: Sequence[bytes], find: Callable[[list[int]], Sequence[Found]]) -> list[Found]:
        """What was found under each key; `find` is given the places of those that are not known, all at once."""
        known = {place: found for place, key in enumerate(keys) if (found := self._found.get(key)) is not None}
        unknown = [place for place in range(len(keys)) if place not in known]
        if unknown:
            known |= zip(unknown, find(unknown), strict=True)
        return [self.get(key, partial(known.__getitem__, place)) for place, key in enumerate(keys)]
