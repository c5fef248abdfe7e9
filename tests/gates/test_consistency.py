"""The consistency gate: red for each inconsistency that a row can hold, by place; green on what the builder writes."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl
import pytest

from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.consistency import consistency_gate
from rc1_lib.pool.as_asked import Questions, known_questions
from rc1_lib.pool.templates import load_pack
from rc1_lib.preflight.gate_list import evaluate
from rc1_lib.records import GateResult, Status
from rc1_lib.rows.frame import ROW_COLUMNS, read_rows
from rc1_lib.rows.schema import check_rows
from tests.gates.damages import UNTRUE, Damage, Rows, answer, first, regolden, solved, wrong
from tests.gates.damages_by_gate import NO_ROWS, WORDED


@pytest.fixture(scope="module")
def questions(evidence: Evidence) -> Questions:
    return known_questions(evidence.run.config, evidence.run.workspace)


@pytest.fixture(scope="module")
def lines(evidence: Evidence) -> list[bytes]:
    """Rows of all kinds, few enough to be damaged again and again."""
    return evidence.path("pool").read_bytes().splitlines()[:100]


@pytest.fixture(scope="module")
def shadow(evidence: Evidence) -> Rows:
    return [orjson.loads(line) for line in evidence.path("shadow").read_bytes().splitlines()]


def judged(evidence: Evidence, rows: Rows, questions: Questions, path: Path) -> GateResult:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    frame = check_rows(read_rows(path), path, "pool")
    pack = load_pack(evidence.path("templates"))
    return consistency_gate({"pool": frame}, questions, pack, evidence.run.config.gates.consistency)


def test_what_the_builder_writes_is_green(evidence: Evidence) -> None:
    result = evaluate("consistency", evidence, 1)
    assert (result.status, result.failures, result.offenders) == (Status.PASSED, (), ())
    played = next(check.value for check in result.checks if check.name == "rows played again")
    assert played == sum(evidence.rows(name).height for name in ("pool", "shadow", "takes"))
    assert played == next(check.value for check in result.checks if check.name == "rows compared with their source")


@pytest.mark.parametrize("damage", [*UNTRUE, *WORDED], ids=lambda damage: damage.name)
def test_an_untrue_row_is_named(
    damage: Damage, evidence: Evidence, lines: list[bytes], shadow: Rows, questions: Questions, tmp_path: Path
) -> None:
    rows = [orjson.loads(line) for line in lines]
    whole = [orjson.loads(line) for line in lines]
    damage.do(rows, shadow)
    touched = {after["id"] for before, after in zip(whole, rows, strict=True) if before != after}
    result = judged(evidence, rows, questions, tmp_path / "rows.jsonl")
    assert result.status is Status.FAILED
    assert {offender["id"] for offender in result.offenders} == touched
    assert all(offender["found"] != offender["expected"] and offender["where"] for offender in result.offenders)


@pytest.mark.parametrize("damage", NO_ROWS, ids=lambda damage: damage.name)
def test_what_is_no_row_is_refused_before(
    damage: Damage, evidence: Evidence, lines: list[bytes], shadow: Rows, questions: Questions, tmp_path: Path
) -> None:
    rows = [orjson.loads(line) for line in lines]
    damage.do(rows, shadow)
    with pytest.raises(RowError, match=r"rows\.jsonl"):
        judged(evidence, rows, questions, tmp_path / "rows.jsonl")


def test_gold_answers_wrong_in_every_row_are_seen_where_the_source_is_not_at_hand(
    evidence: Evidence, lines: list[bytes], tmp_path: Path
) -> None:
    """By the sums: those of one row in so many may end elsewhere, those of all may not."""
    rows = [orjson.loads(line) for line in lines]
    regolden(first(rows, solved))
    assert judged(evidence, rows, {}, tmp_path / "one.jsonl").status is Status.PASSED
    rows = [orjson.loads(line) for line in lines]
    for row in filter(solved, rows):
        regolden(row)
    failed = judged(evidence, rows, {}, tmp_path / "every.jsonl").failures
    assert [check.name for check in failed] == ["word problems whose last sum is not the answer, share"]


def test_rows_that_do_not_record_their_users_replies_are_played_all_the_same(
    evidence: Evidence, lines: list[bytes], questions: Questions, tmp_path: Path
) -> None:
    rows = [{**orjson.loads(line), "user_replies": None} for line in lines]
    result = judged(evidence, rows, questions, tmp_path / "old.jsonl")
    assert result.status is Status.PASSED
    assert next(check.value for check in result.checks if "not recorded" in check.name) == len(rows)
    answer(first(rows, solved), wrong(first(rows, solved)))
    assert judged(evidence, rows, questions, tmp_path / "wrong.jsonl").status is Status.FAILED


def test_as_many_rows_as_the_threshold_allows_may_be_untrue(
    evidence: Evidence, lines: list[bytes], questions: Questions, tmp_path: Path
) -> None:
    rows = [orjson.loads(line) for line in lines]
    for row in [row for row in rows if row["solved"]][:3]:
        row["solved"] = False
    judged(evidence, rows, questions, tmp_path / "rows.jsonl")
    frame = read_rows(tmp_path / "rows.jsonl")
    pack = load_pack(evidence.path("templates"))
    for most, status in ((3, Status.PASSED), (2, Status.FAILED)):
        limits = evidence.run.config.gates.consistency.model_copy(update={"max_rows": most})
        assert consistency_gate({"pool": frame}, questions, pack, limits).status is status


def test_no_rows_are_no_pass(evidence: Evidence) -> None:
    nothing = pl.DataFrame(schema=pl.Schema(ROW_COLUMNS))
    limits = evidence.run.config.gates.consistency
    pack = load_pack(evidence.path("templates"))
    assert consistency_gate({"pool": nothing}, {}, pack, limits).status is Status.FAILED
