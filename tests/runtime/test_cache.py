"""What was found before is not looked for again, and the oldest of it goes."""

from __future__ import annotations

from rc1_lib.runtime.cache import SHORT_CHARS, Memo, of_short_texts


def test_the_one_not_asked_for_longest_goes_and_is_found_anew() -> None:
    looked: list[str] = []

    def find(name: str) -> str:
        looked.append(name)
        return name.upper()

    memo = Memo[str](2)
    assert [memo.get(name.encode(), lambda name=name: find(name)) for name in "abacab"] == list("ABACAB")  # type: ignore[misc]
    assert looked == ["a", "b", "c", "b"] and len(memo) == 2


def test_what_is_asked_for_together_is_looked_for_together_where_it_is_not_known() -> None:
    looked: list[list[int]] = []

    def shout(texts: list[str]) -> list[str]:
        def find(places: list[int]) -> list[str]:
            looked.append(places)
            return [texts[place].upper() for place in places]

        return memo.get_all([text.encode() for text in texts], find)

    memo = Memo[str](3)
    assert shout(["a", "b"]) == ["A", "B"]
    assert shout(["b", "c", "a"]) == ["B", "C", "A"]
    assert shout(["a", "c"]) == ["A", "C"] and looked == [[0, 1], [1]]
    assert shout(["d", "e", "f", "g"]) == ["D", "E", "F", "G"] and len(memo) == 3
    assert shout(["g", "d"]) == ["G", "D"] and looked[2:] == [[0, 1, 2, 3], [1]]


def test_what_is_found_of_a_short_text_is_kept_and_of_a_long_one_looked_for_again() -> None:
    looked: list[str] = []

    @of_short_texts(2)
    def shout(text: str) -> str:
        """Louder."""
        looked.append(text)
        return text.upper()

    long = "x" * (SHORT_CHARS + 1)
    assert [shout(text) for text in ("a", "a", "b", "c", "a")] == list("AABCA")
    assert looked == ["a", "b", "c", "a"]
    assert shout(long) == shout(long) == long.upper() and looked[4:] == [long, long]
    assert shout.__doc__ == "Louder."
