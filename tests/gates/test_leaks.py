"""Planted leaks of every kind: found with place and measure if most words are kept, without false alarms."""

from __future__ import annotations

import json
import random

import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.gates.leakage import leakage_gate
from rc1_lib.pool.build import decontaminate
from rc1_lib.pool.templates import load_pack
from rc1_lib.records import GateResult, Passage, Question
from rc1_lib.sources.embedded import EMBEDDED_TASKS as TASKS
from rc1_lib.text.leak_search import LeakSearch, Spelled, common
from rc1_lib.text.normalization import read, words
from tests.conftest import SHARED_DATA
from tests.gates.planted_leaks import EDITS, SURE, SURE_PLACES, Planted, planted

EACH = 12


def evaluate_pool(evidence: Evidence, rows: pl.DataFrame) -> GateResult:
    packs = [load_pack(evidence.path(name)) for name in ("reference_templates", "templates")]
    literals = [text for pack in packs for lang in ("en", "zh") for text in pack.literals(lang)]
    return leakage_gate(rows, evidence.rows("shadow"), evidence.run.config.gates.leakage, literals, TASKS)


@pytest.fixture(scope="module")
def rows(evidence: Evidence) -> pl.DataFrame:
    return evidence.rows("pool")


@pytest.fixture(scope="module")
def searched(evidence: Evidence, rows: pl.DataFrame) -> tuple[list[Planted], GateResult]:
    damaged, leaks = planted(rows, evidence.rows("shadow"), EACH)
    return leaks, evaluate_pool(evidence, damaged)


def test_a_clean_pool_passes_without_offenders(evidence: Evidence, rows: pl.DataFrame) -> None:
    result = evaluate_pool(evidence, rows)
    assert result.failures == ()
    assert result.offenders == ()


def test_leaks_that_keep_four_fifths_of_the_words_are_found_with_their_place(
    searched: tuple[list[Planted], GateResult],
) -> None:
    """At most one of a kind and one in a hundred overall are missed; of unedited leaks none, in any place."""
    leaks, result = searched
    named = {(leak["id"], leak.get("shadow_id")): leak for leak in result.offenders}
    missed = [leak.kind for leak in leaks if (leak.id, leak.shadow_id) not in named]
    assert all(missed.count(kind) <= 1 for kind in SURE)
    assert sum(missed.count(kind) for kind in SURE) <= 0.01 * EACH * len(SURE)
    assert not set(missed) & set(SURE_PLACES)
    for leak in leaks:
        if leak.kind in (*SURE, *SURE_PLACES) and (leak.id, leak.shadow_id) in named:
            found = named[leak.id, leak.shadow_id]
            assert found["where"].startswith(leak.where)
            assert (found["measure"] == "id") == ("row's id" in leak.kind)


def test_rows_without_a_leak_are_not_reported(searched: tuple[list[Planted], GateResult]) -> None:
    leaks, result = searched
    assert {leak["id"] for leak in result.offenders} <= {leak.id for leak in leaks}


def test_normalization_reads_what_a_reader_sees() -> None:
    read_as = {
        "<b>Se</b>v\u00addr\u200besh ｌｉｖｅｓ<br>HERE": "sevdresh lives here",
        json.dumps({"q": "如果德黎"}): "q 如 果 德 黎",
        json.dumps(json.dumps("如果")): "如 果",
        "Сosta &amp; caf\u00e9 **bo**ld": "costa cafe bold",
        "fi\u0335sh \\n fish": "fish fish",
        "a < b and c > d": "a b and c d",
        "ոօսո հսցɑ ᴛɪᴍᴇ ᎳᎬ ᎷᎬᎢ": "noun huga time we met",
    }
    for text, wanted in read_as.items():
        assert words(pl.Series([text]))[0].to_list() == wanted.split(), text


def test_spelled_letters_are_found_with_any_spacing_but_not_inside_longer_words() -> None:
    held = Spelled(pl.Series(["Who built the tower of Ara?", "Who was it?"]))
    leaks = {
        "So: whobuiltthetowerofara?": True,
        "w-h-o b/u/i/l/t the_tower_of_Ara": True,
        "arAforewotehttliubohw": True,
        "谁who built the tower of Ara在": True,
        "Who built the tower of Arabel?": False,
        "And who built the towers of Ara?": False,
        "Somewho built the tower of Ara": False,
        "whowasit": False,  # so few letters can occur by chance
    }
    texts = pl.Series(list(leaks))
    found = held.found_in(texts, read(texts).letters)
    assert found["row"].to_list() == [row for row, leak in enumerate(leaks.values()) if leak]
    assert set(found["held"]) == {0}


def test_the_common_subsequence_equals_the_plain_recursion() -> None:
    rng = random.Random(7)
    for _ in range(200):
        first, second = ([rng.randrange(6) for _ in range(rng.randrange(12))] for _ in range(2))
        table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
        for i, left in enumerate(first):
            for j, right in enumerate(second):
                table[i + 1][j + 1] = table[i][j] + 1 if left == right else max(table[i][j + 1], table[i + 1][j])
        assert common(first, second) == table[-1][-1]


def test_the_builder_drops_questions_that_the_gate_would_report(evidence: Evidence) -> None:
    def question(name: str, ask: str, *pages: Passage) -> Question:
        return Question(name, "hotpotqa", "own", "en", ask, (), pages, (), "x")

    held = question("held", "Who taught the builder of the tower Pylalon, finished in 855 with Wemrud as warden?")
    edited = question("edited", "Who taught the builder of the tall tower Pylalon, finished in 855 with Wemrud warden?")
    other = question("other", "Who taught the builder of the tower Bastunda, finished in 788 with Wemlurn as warden?")
    kept, left_out = decontaminate([edited, other], [held], evidence.run.config.gates.leakage)
    assert (kept, left_out) == ([other], 1)
    shared_page = Passage(
        "Pylalon", "Nura taught the builder of the tower Pylalon, finished in 855 with Wemrud as warden."
    )
    reader = question("reader", "Which river runs past the mill of Hasp?", Passage("Hasp", "A mill."), shared_page)
    kept, left_out = decontaminate([reader, other], [held], evidence.run.config.gates.leakage)
    assert (kept, left_out) == ([other], 1)


def test_planted_public_questions_are_found_with_under_one_per_cent_false_alarms(evidence: Evidence) -> None:
    """Public word problems repeat each other with other numbers: a few false alarms really are paraphrases."""
    path = SHARED_DATA / "gsm8k" / "train.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is missing: the public questions are not part of the repository")
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:2600]]
    limits = evidence.run.config.gates.leakage
    rng = random.Random(3)
    asked = [record["question"] for record in records]
    texts = [f"{record['question']}\n{record['answer']}" for record in records]
    held, hidden = asked[:100], texts[100:]
    wanted: dict[int, int] = {}
    for kind in SURE:
        for number in rng.sample(range(len(held)), 5):
            row = rng.choice([row for row in range(len(hidden)) if row not in wanted])
            wanted[row] = number
            hidden[row] += f" {EDITS[kind](held[number], rng)}"
    search = LeakSearch(pl.Series(held), pl.Series(asked[100:]), limits).over([pl.Series(hidden)])
    repeated = search.repeated.filter(pl.col("similarity") > limits.max_similarity)
    found = {
        (row, number)
        for table in (search.retold.filter("leak"), repeated, search.spelled)
        for row, number in table.select("row", "held").iter_rows()
    }
    assert set(wanted.items()) <= found
    assert len({row for row, _ in found} - set(wanted)) <= 0.01 * len(hidden)
