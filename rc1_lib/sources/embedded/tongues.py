"""Everything that differs between the two languages, gathered under one record each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rc1_lib.records import Language
from rc1_lib.sources.embedded import (
    en_facts,
    en_hops,
    en_openings,
    en_story_asks,
    en_turns,
    en_words,
    en_yesno,
    zh_facts,
    zh_hops,
    zh_openings,
    zh_story_asks,
    zh_turns,
    zh_words,
    zh_yesno,
)
from rc1_lib.sources.embedded.names import NAMES

Wordings = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Tongue:
    """One language's names, words and sentence patterns.

    Of `prefixes` and `suffixes` each is one aside in all its wordings. `joint` stands between two sentences. A telling
    is the tuple of sentences that one story part is told in; `blanks` says of each part which of its numbers can be
    withheld and what the user is then asked for.
    """

    lang: Language
    joint: str
    names: Wordings
    words: Wordings
    prefixes: tuple[tuple[str, ...], ...]
    suffixes: tuple[tuple[str, ...], ...]
    joiners: tuple[str, ...]
    vague: Wordings
    wanted: Wordings
    facts: Wordings
    hops: Wordings
    yesno: Wordings
    tellings: Mapping[str, tuple[tuple[str, ...], ...]]
    blanks: Mapping[str, tuple[tuple[str, str], ...]]
    story_asks: Wordings


def _filled(asides: tuple[str, ...], words: Wordings) -> tuple[tuple[str, ...], ...]:
    """Every way to fill each aside's blanks. Filled once here, since most sentences of a long pool may carry one."""
    return tuple(
        tuple(
            dict.fromkeys(
                aside.format(j=j, k=k, f=f) for j in words["j"] for k, f in zip(words["k"], words["f"], strict=True)
            )
        )
        for aside in asides
    )


TONGUES: Mapping[Language, Tongue] = {
    "en": Tongue(
        lang="en",
        joint=" ",
        names=NAMES["en"],
        words=en_words.WORDS,
        prefixes=_filled(en_words.PREFIXES, en_words.WORDS),
        suffixes=_filled(en_words.SUFFIXES, en_words.WORDS),
        joiners=tuple(sorted(en_words.JOINERS)),
        vague=en_words.VAGUE,
        wanted=en_words.WANTED,
        facts=en_facts.FACTS,
        hops=en_hops.ASKS,
        yesno=en_yesno.ASKS,
        tellings={**en_openings.TELLINGS, **en_turns.TELLINGS},
        blanks=en_story_asks.BLANKS,
        story_asks=en_story_asks.ASKS,
    ),
    "zh": Tongue(
        lang="zh",
        joint="",
        names=NAMES["zh"],
        words=zh_words.WORDS,
        prefixes=_filled(zh_words.PREFIXES, zh_words.WORDS),
        suffixes=_filled(zh_words.SUFFIXES, zh_words.WORDS),
        joiners=zh_words.JOINERS,
        vague=zh_words.VAGUE,
        wanted=zh_words.WANTED,
        facts=zh_facts.FACTS,
        hops=zh_hops.ASKS,
        yesno=zh_yesno.ASKS,
        tellings={**zh_openings.TELLINGS, **zh_turns.TELLINGS},
        blanks=zh_story_asks.BLANKS,
        story_asks=zh_story_asks.ASKS,
    ),
}
