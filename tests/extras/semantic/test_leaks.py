"""Leaks in other words: planted ones are reported, clean rows are not, and a useless model cannot pass the check."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rc1_lib.config.thresholds import SemanticLeaks
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import POOL, SHADOW, Evidence, bound
from rc1_lib.extras.semantic import leaks
from rc1_lib.extras.semantic.leaks import PARAPHRASES, leaks_in_other_words, surroundings
from rc1_lib.gates.leakage import leakage_gate
from rc1_lib.preflight.gate_list import NOT_LOOKED_FOR, evaluate
from rc1_lib.records import Check, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, FileState, sha256_folder

from .sentence_folders import bag_of_words

REAL = "RC1_TEST_SENTENCE_MODEL"
WORDS = [f"w{number}" for number in range(400)]
LIMITS = SemanticLeaks(model="model", false_alarms=0.05, min_found=0.0)
LEAKS, RECOGNISED = "rows that ask a shadow question in other words", "paraphrases that it would recognise [en]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag_of_words(tmp_path_factory.mktemp("sentence") / "model", WORDS)


def asking(rows: pl.DataFrame, texts: list[str]) -> pl.DataFrame:
    """English rows of strategyqa that ask these questions."""
    asked = rows.head(len(texts))
    return asked.with_columns(task=pl.lit("strategyqa"), question=pl.Series(texts), lang=pl.lit("en"))


def random_questions(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.sample(WORDS, 12)) for _ in range(count)]


def shuffled(text: str) -> str:
    """The same words in another order, without one: a paraphrase to a bag of words."""
    words = text.split()
    random.Random(0).shuffle(words)
    return " ".join(words[1:])


@pytest.fixture(scope="module")
def shadow(evidence: Evidence) -> pl.DataFrame:
    return asking(evidence.rows("shadow"), random_questions(110, 1))


@pytest.fixture(scope="module")
def clean(evidence: Evidence) -> pl.DataFrame:
    return asking(evidence.rows("pool"), random_questions(400, 2))


def with_leaks(rows: pl.DataFrame, shadow: pl.DataFrame, places: dict[int, int]) -> pl.DataFrame:
    texts, asked = rows["question"].to_list(), shadow["question"].to_list()
    for row, held_out in places.items():
        texts[row] = shuffled(asked[held_out])
    return rows.with_columns(question=pl.Series(texts))


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_clean_rows_are_not_flagged(clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path) -> None:
    checks, offenders = leaks_in_other_words(clean, shadow, LIMITS, folder)
    assert offenders == ()
    assert all(check.passed for check in checks)
    assert by_name(checks)[LEAKS].value == 0


def test_planted_leak_is_reported_with_shadow_row_cosine_and_bound(
    clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {7: 3, 90: 3, 399: 40}
    monkeypatch.setattr(leaks, "_AT_ONCE", 64)
    checks, offenders = leaks_in_other_words(with_leaks(clean, shadow, places), shadow, LIMITS, folder)
    assert (by_name(checks)[LEAKS].passed, by_name(checks)[LEAKS].value) == (False, 3)
    found = {(one["id"], one["shadow_id"]) for one in offenders}
    assert found == {(clean["id"][row], shadow["id"][held_out]) for row, held_out in places.items()}
    for one in offenders:
        assert (one["measure"], one["where"], one["reason"]) == ("cosine", "question", "leak")
        assert 1 > one["similarity"] > one["bound"] > 0


def test_many_leaks_do_not_raise_the_bound(clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path) -> None:
    """A bound computed from the rows would rise with leaks that are similar to one another."""
    places = {row: row % 110 for row in range(300)}
    checks, _ = leaks_in_other_words(with_leaks(clean, shadow, places), shadow, LIMITS, folder)
    assert by_name(checks)[LEAKS].value == 300


def test_near_duplicate_shadow_questions_do_not_hide_another_leak(
    clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path
) -> None:
    asked = shadow["question"].to_list()
    asked[105] = shuffled(asked[104])
    repeating = shadow.with_columns(question=pl.Series(asked))
    checks, offenders = leaks_in_other_words(with_leaks(clean, shadow, {7: 3}), repeating, LIMITS, folder)
    assert by_name(checks)[LEAKS].value == 1
    assert offenders[0]["shadow_id"] == shadow["id"][3]


def test_bound_rises_with_questions_and_falls_with_allowed_alarms() -> None:
    rng = np.random.default_rng(0)
    held = rng.normal(size=(120, 32)).astype(np.float32)
    around = surroundings(held / np.linalg.norm(held, axis=1, keepdims=True))
    bounds = [around.bound(questions, 0.05) for questions in (100, 5_000, 300_000)]
    assert bounds == sorted(bounds)
    assert around.bound(5_000, 5.0) < bounds[1]


def test_surroundings_match_a_plain_loop() -> None:
    rng = np.random.default_rng(1)
    held = rng.normal(size=(60, 8)).astype(np.float32)
    held /= np.linalg.norm(held, axis=1, keepdims=True)
    around = surroundings(held)
    for one in range(0, 60, 7):
        nearest = sorted((float(held[one] @ held[other]) for other in range(60) if other != one), reverse=True)[:3]
        assert around.near[one] == pytest.approx(np.mean(nearest), abs=1e-6)
        leads = []
        for held_out in (other for other in range(60) if other != one):
            rest = [float(held[held_out] @ held[third]) for third in range(60) if third not in (one, held_out)]
            leads.append(float(held[one] @ held[held_out]) - np.mean(sorted(rest, reverse=True)[:3]))
        assert around.leads[one] == pytest.approx(max(leads), abs=1e-6)


def test_false_alarm_rate_is_close_to_the_allowed_one() -> None:
    """Independent vectors of one distribution: 40 draws of 2,000 questions may raise about 40 alarms."""
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(40):
        vectors = rng.normal(size=(2_120, 24)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        held, rows = vectors[:120], vectors[120:]
        around = surroundings(held)
        alarms += int(((rows @ held.T - around.near).max(axis=1) > around.bound(len(rows), 1.0)).sum())
    assert 10 <= alarms <= 160


def test_model_without_semantics_fails(clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path) -> None:
    limits = LIMITS.model_copy(update={"min_found": 0.1})
    checks, offenders = leaks_in_other_words(clean, shadow, limits, folder)
    assert offenders == ()
    assert by_name(checks)[RECOGNISED].passed is False
    assert "gates.leakage.semantic.false_alarms" in by_name(checks)[RECOGNISED].advice


def test_model_with_constant_vectors_fails(clean: pl.DataFrame, shadow: pl.DataFrame, tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"min_found": 0.01})
    blank = bag_of_words(tmp_path / "blank", WORDS, scale=0.0)
    checks, offenders = leaks_in_other_words(with_leaks(clean, shadow, {7: 3}), shadow, limits, blank)
    assert offenders == ()
    assert (by_name(checks)[RECOGNISED].value, by_name(checks)[RECOGNISED].passed) == (0.0, False)


def test_model_that_truncates_the_questions_fails(
    clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's own file limits the length; our short paraphrases alone would all be recognised."""
    rng = random.Random(3)
    asked = [" ".join(rng.sample(WORDS, 40)) for _ in range(110)]
    long = shadow.with_columns(question=pl.Series(asked))
    texts = clean["question"].to_list()
    texts[7] = " ".join(asked[3].split()[::-1])
    rows = clean.with_columns(question=pl.Series(texts))
    pairs = [{"lang": "en", "question": text, "in_other_words": shuffled(text)} for text in random_questions(20, 4)]
    monkeypatch.setattr(leaks, "PARAPHRASES", tmp_path / "pairs.jsonl")
    leaks.PARAPHRASES.write_text("".join(json.dumps(one) + "\n" for one in pairs))
    limits = LIMITS.model_copy(update={"min_found": 0.1})
    whole = by_name(leaks_in_other_words(rows, long, limits, folder)[0])
    assert (whole[LEAKS].value, whole[RECOGNISED].passed) == (1, True)
    short = Path(shutil.copytree(folder, tmp_path / "short"))
    (short / "sentence_bert_config.json").write_text('{"max_seq_length": 16}')
    cut = by_name(leaks_in_other_words(rows, long, limits, short)[0])
    assert cut[LEAKS].value == 0, "the leak starts where the shadow question ends"
    assert (cut[RECOGNISED].value, cut[RECOGNISED].passed) == (0.0, False)
    assert " 16 tokens" in cut[RECOGNISED].advice


def test_causal_language_model_fails(clean: pl.DataFrame, shadow: pl.DataFrame) -> None:
    limits = LIMITS.model_copy(update={"min_found": 0.1})
    checks, _ = leaks_in_other_words(clean.head(50), shadow, limits, PROJECT_ROOT / "models/embedded")
    assert by_name(checks)[RECOGNISED].passed is False


def test_every_language_of_the_shadow_set_is_checked(clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path) -> None:
    both = pl.concat([shadow.head(40), shadow.tail(70).with_columns(lang=pl.lit("zh"))])
    checks = by_name(leaks_in_other_words(clean, both, LIMITS, folder)[0])
    assert RECOGNISED in checks and RECOGNISED.replace("en", "zh") in checks


def test_too_few_shadow_questions_are_rejected(clean: pl.DataFrame, shadow: pl.DataFrame, folder: Path) -> None:
    with pytest.raises(RC1Error, match=r"^gates\.leakage\.semantic: found 99 .*100.* shadow\.n"):
        leaks_in_other_words(clean, shadow.head(99), LIMITS, folder)


def test_no_rows_give_no_checks(shadow: pl.DataFrame, clean: pl.DataFrame, folder: Path) -> None:
    assert leaks_in_other_words(clean.clear(), shadow, LIMITS, folder) == ([], ())


def test_gate_without_a_model_reports_that_it_did_not_look(evidence: Evidence) -> None:
    result = evaluate("leakage", evidence, 1)
    assert by_name(list(result.checks))["leaks in other words"].value == NOT_LOOKED_FOR
    assert "sentence_model" not in bound(evidence.run)


@pytest.fixture
def run_with_model(built: Run, folder: Path, tmp_path: Path) -> Callable[..., Run]:
    """Make the small pool's run with its own copy of the model configured."""
    copy = Path(shutil.copytree(folder, tmp_path / "model"))

    def make(*overrides: str) -> Run:
        settings = (*built.overrides, f"gates.leakage.semantic.model={copy}", *overrides)
        return open_run(profile="local", workspace=built.workspace.root, overrides=settings)

    return make


def test_gate_uses_the_configured_model_and_records_its_hash(run_with_model: Callable[..., Run]) -> None:
    run = run_with_model()
    result = evaluate("leakage", Evidence(run), 1)
    assert result.status is Status.FAILED
    assert {check.name.partition(" [")[0] for check in result.failures} <= {RECOGNISED.partition(" [")[0], LEAKS}
    model = bound(run)["sentence_model"].path(run)
    assert result.evidence["model"] == bound(run)["sentence_model"].sha256(run) == sha256_folder(model)
    (model / "README.md").write_text("another")
    assert evaluate("leakage", Evidence(run), 1).evidence["model"] != result.evidence["model"]
    shutil.rmtree(model)
    assert "'sentence_model'" in evaluate("leakage", Evidence(run), 1).error


def test_configured_model_does_not_make_the_pool_stale(run_with_model: Callable[..., Run]) -> None:
    run = run_with_model("gates.leakage.semantic.false_alarms=0.5")
    assert [one.state(run) for one in (SHADOW, POOL)] == [FileState.FRESH] * 2


def paraphrases() -> list[dict[str, str]]:
    return [json.loads(line) for line in PARAPHRASES.read_text(encoding="utf-8").splitlines()]


def test_paraphrases_are_100_in_two_languages() -> None:
    assert Counter((one["lang"], one["of"]) for one in paraphrases()) == {
        ("en", "embedded"): 30, ("en", "everyday"): 30, ("zh", "embedded"): 20, ("zh", "everyday"): 20,
    }  # fmt: skip
    assert all(one.keys() == {"lang", "of", "question", "in_other_words"} for one in paraphrases())
    assert len({one["question"] for one in paraphrases()} | {one["in_other_words"] for one in paraphrases()}) == 200


def test_lexical_measures_miss_the_paraphrases(evidence: Evidence) -> None:
    limits, own = evidence.run.config.gates.leakage, paraphrases()
    first, second = ([one[side] for one in own] for side in ("question", "in_other_words"))
    held = asking(evidence.rows("shadow"), first).with_columns(
        id=pl.Series([f"held-{at}" for at in range(100)]), source_id=pl.Series([f"held/{at}" for at in range(100)])
    )
    rows = pl.concat([evidence.rows("pool").tail(300), asking(evidence.rows("pool"), second)])
    result = leakage_gate(rows, held, limits, [], [])
    wanted = set(zip(rows["id"].tail(100), held["id"], strict=True))
    assert not {(one["id"], one.get("shadow_id")) for one in result.offenders} & wanted


@pytest.mark.skipif(not os.environ.get(REAL), reason=f"asks a real sentence model: {REAL} has to name its folder")
def test_real_model_flags_paraphrases_and_no_clean_row(evidence: Evidence) -> None:
    """At least a third of them, each with its own shadow row."""
    own = paraphrases()
    held = asking(evidence.rows("shadow"), [one["question"] for one in own]).with_columns(
        lang=pl.Series([one["lang"] for one in own])
    )
    planted = asking(evidence.rows("pool").tail(100), [one["in_other_words"] for one in own])
    clean = evidence.rows("pool").filter((pl.col("lang") == "en") & (pl.col("task") == "gsm8k")).head(100)
    limits = LIMITS.model_copy(update={"min_found": 0.1})
    checks, offenders = leaks_in_other_words(pl.concat([planted, clean]), held, limits, Path(os.environ[REAL]))
    found = {(one["id"], one["shadow_id"]) for one in offenders}
    assert len(found) >= 33
    assert found <= set(zip(planted["id"], held["id"], strict=True))
    assert by_name(checks)[RECOGNISED].passed
