"""What was found before is not looked for again, and the oldest of it goes."""

from __future__ import annotations

from rc1_lib.memo import SHORT_CHARS, Memo, of_short_texts


def test_the_one_not_asked_for_longest_goes_and_is_found_anew() -> None:
    looked: list[str] = []

    def find(name: str) -> str:
        looked.append(name)
        return name.upper()

    memo = Memo[str](2)
    assert [memo.get(name.encode(), lambda name=name: find(name)) for name in "abacab"] == list("ABACAB")  # type: ignore[misc]
    assert looked == ["a", "b", "c", "b"] and len(memo) == 2


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
