"""What was found before is not looked for again, and the oldest of it goes."""

from __future__ import annotations

from rc1_lib.memo import Memo


def test_the_one_not_asked_for_longest_goes_and_is_found_anew() -> None:
    looked: list[str] = []

    def find(name: str) -> str:
        looked.append(name)
        return name.upper()

    memo = Memo[str](2)
    assert [memo.get(name.encode(), lambda name=name: find(name)) for name in "abacab"] == list("ABACAB")  # type: ignore[misc]
    assert looked == ["a", "b", "c", "b"] and len(memo) == 2
