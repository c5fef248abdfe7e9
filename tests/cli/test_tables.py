"""The check that a gate's table shows as deciding, and how figures are written."""

from __future__ import annotations

from io import StringIO
from typing import Any

import polars as pl
from rich.console import Console

from rc1_lib.check_words import failed_lines
from rc1_lib.cli.tables import gates_table, undecided_lines
from rc1_lib.difficulty.report import FEATURES, difficulty_report
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.preflight.round_report import tally
from rc1_lib.records import Check, GateResult


def gate(*checks: Check, **more: Any) -> dict[str, Any]:
    return {**GateResult("length", checks, **more).to_dict(), "offenders": 0}


def drawn(body: dict[str, Any]) -> str:
    stream = StringIO()
    Console(file=stream, width=100).print(gates_table("round 1", [body]))
    return stream.getvalue()


TIGHT = Check("tight", 0.61, ">=", 0.60, True)
LOOSE = Check("loose", 9.0, ">=", 1.0, True)
BROKEN = Check("broken", 5, "<=", 4, False, "do less")


def test_failed_gate_shows_its_first_failing_check() -> None:
    assert "broken" in drawn(gate(TIGHT, BROKEN))
    assert failed_lines(gate(TIGHT, BROKEN), "x.jsonl") == ["length: broken is 5, wanted <= 4", "    do less"]


def test_value_whose_interval_covers_the_threshold_is_undecided() -> None:
    wide = CheckInterval(0.5, 0.7, 0.95, 100, "dialogues")
    words = "undecided: its 95 % interval 0.5 to 0.7 covers the threshold; about"
    failed, passed = (Check("spearman", value, ">=", 0.60, value > 0.6, "", wide) for value in (0.59, 0.61))
    assert failed_lines(gate(failed), "")[1].startswith(f"    {words} ")
    assert undecided_lines([gate(failed)]) == [], "the failed check has this line"
    assert undecided_lines([gate(passed), gate(TIGHT)]) == [
        f"length: spearman is 0.61, wanted >= 0.6; {words} 13,000 dialogues would decide it (100 were checked)"
    ]
    assert "0.61 >= 0.6, undecided" in drawn(gate(passed))


def test_passed_gate_shows_the_check_closest_to_its_threshold() -> None:
    text = drawn(gate(LOOSE, TIGHT))
    assert "tight" in text
    assert "0.61 >= 0.6" in text
    assert failed_lines(gate(LOOSE, TIGHT), "x.jsonl") == []


def metrics(rows: int) -> pl.DataFrame:
    numbers = pl.int_range(rows, eager=True)
    columns = dict.fromkeys(FEATURES, numbers) | {"clue_overlap": numbers / 100}
    return pl.DataFrame(columns).with_columns(
        id=numbers.cast(pl.String),
        task=pl.when(numbers % 2 == 0).then(pl.lit("gsm8k")).otherwise(pl.lit("hotpotqa")),
        bucket=pl.when(numbers < 5).then(pl.lit("easy")).otherwise(pl.lit("hard")),
        needs_clarification=numbers % 2 == 0,
        ambiguity_flags=pl.Series([["vague-time"]] * rows, dtype=pl.List(pl.String)),
    )


def test_waived_gate_and_one_that_does_not_apply_are_not_counted_as_passed() -> None:
    others = [GateResult("git", waiver="no commit here"), GateResult("weights", not_applicable="pays no judge")]
    assert tally([GateResult("mix", (TIGHT,)), *others]) == "1 of 3 gates passed, 1 waived, 1 not applicable"


def test_difficulty_report_counts_every_row_once() -> None:
    report = difficulty_report(metrics(11), ["0", "1", "10"])
    assert report["counts"]["pool"]["all"] == {"easy": 5, "medium": 0, "hard": 6, "total": 11}
    assert report["counts"]["balanced"]["gsm8k"] == {"easy": 1, "medium": 0, "hard": 1, "total": 2}
    assert report["features"]["turns"]["pool"]["all"] == {
        "p10": 1.0, "p50": 5.0, "p90": 9.0, "lowest": 0.0, "highest": 10.0, "mean": 5.0,
    }  # fmt: skip
    for drawing in report["histograms"].values():
        assert (sum(drawing["pool"]), sum(drawing["balanced"])) == (11, 3)
        assert len(drawing["edges"]) == len(drawing["pool"]) + 1
    assert report["histograms"]["turns"]["edges"] == list(range(12))
