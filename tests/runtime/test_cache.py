"""Cached results are reused, and the least recently used ones are evicted."""

from __future__ import annotations

from rc1_lib.runtime.cache import SHORT_CHARS, Memo, of_short_texts


def test_least_recently_used_entry_is_evicted_and_computed_again() -> None:
    computed: list[str] = []

    def compute(name: str) -> str:
        computed.append(name)
        return name.upper()

    memo = Memo[str](2)
    assert [memo.get(name.encode(), lambda name=name: compute(name)) for name in "abacab"] == list("ABACAB")  # type: ignore[misc]
    assert computed == ["a", "b", "c", "b"] and len(memo) == 2


def test_get_all_computes_only_the_missing_entries_together() -> None:
    computed: list[list[int]] = []

    def upper_all(texts: list[str]) -> list[str]:
        def compute(places: list[int]) -> list[str]:
            computed.append(places)
            return [texts[place].upper() for place in places]

        return memo.get_all([text.encode() for text in texts], compute)

    memo = Memo[str](3)
    assert upper_all(["a", "b"]) == ["A", "B"]
    assert upper_all(["b", "c", "a"]) == ["B", "C", "A"]
    assert upper_all(["a", "c"]) == ["A", "C"] and computed == [[0, 1], [1]]
    assert upper_all(["d", "e", "f", "g"]) == ["D", "E", "F", "G"] and len(memo) == 3
    assert upper_all(["g", "d"]) == ["G", "D"] and computed[2:] == [[0, 1, 2, 3], [1]]


def test_only_results_of_short_texts_are_cached() -> None:
    computed: list[str] = []

    @of_short_texts(2)
    def upper(text: str) -> str:
        """In capitals."""
        computed.append(text)
        return text.upper()

    long = "x" * (SHORT_CHARS + 1)
    assert [upper(text) for text in ("a", "a", "b", "c", "a")] == list("AABCA")
    assert computed == ["a", "b", "c", "a"]
    assert upper(long) == upper(long) == long.upper() and computed[4:] == [long, long]
    assert upper.__doc__ == "In capitals."
