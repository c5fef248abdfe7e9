"""What the numbers of a text count."""

from __future__ import annotations

import pytest

from rc1_lib.language.quantities import counted


@pytest.mark.parametrize(
    ("text", "number", "nouns"),
    [
        ("She reads 53 pages.", "53", {"page"}),
        ("She reads 53 Pages and 1 page.", "1", {"page"}),
        ("It costs $1,200 a year.", "1200", {"$"}),
        ("20% are gone", "20", {"%"}),
        ("30 more nuts", "30", {""}),
        ("5 of them", "5", {""}),
        ("There are 5.", "5", {""}),
        ("5 boys and 5 girls", "5", {"boy", "girl"}),
        ("每晚读53页", "53", {"页"}),
        ("满58岁", "58", {"年"}),
        ("５ｐａｇｅｓ", "5", {"page"}),
        ("a bus, 7 gas lamps", "7", {"gas"}),
    ],
)
def test_a_number_counts_the_word_behind_it(text: str, number: str, nouns: set[str]) -> None:
    assert counted([text])[number] == nouns


def test_words_are_no_figures() -> None:
    assert counted(["three bags and twice as many nuts"]) == {}


def test_places_are_taken_together() -> None:
    assert counted(["4 mules", "4 days"]) == {"4": frozenset({"mule", "day"})}
