"""The consistency gate passes on what the builder writes, and names row and place of each inconsistency."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.gates.consistency import consistency_gate
from rc1_lib.pool.as_asked import Questions, known_questions
from rc1_lib.pool.templates import load_pack
from rc1_lib.records import GateResult, Status
from rc1_lib.rows.frame import ROW_COLUMNS, read_rows
from rc1_lib.rows.inconsistency import Kind
from rc1_lib.rows.schema import check_rows
from tests.conftest import Verdicts
from tests.gates.damages import UNTRUE, Damage, Rows, first, replace_gold, solved
from tests.gates.damages_by_gate import WORDED


@pytest.fixture(scope="module")
def questions(evidence: Evidence) -> Questions:
    return known_questions(evidence.run.config, evidence.run.workspace)


@pytest.fixture(scope="module")
def lines(evidence: Evidence) -> list[bytes]:
    """Rows of all kinds, few enough to damage many times."""
    return evidence.path("pool").read_bytes().splitlines()[:100]


@pytest.fixture(scope="module")
def shadow(evidence: Evidence) -> Rows:
    return [orjson.loads(line) for line in evidence.path("shadow").read_bytes().splitlines()]


def judged(evidence: Evidence, rows: Rows, questions: Questions, path: Path) -> GateResult:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    frame = check_rows(read_rows(path), path, "pool")
    pack = load_pack(evidence.path("templates"))
    return consistency_gate({"pool": frame}, questions, pack)


def test_every_row_of_the_builder_passes(evidence: Evidence, verdicts: Verdicts) -> None:
    (result,) = (one for one in verdicts[1] if one.name == "consistency")
    assert (result.status, result.failures, result.offenders) == (Status.PASSED, (), ())
    replayed = next(check.value for check in result.checks if check.name == "rows played again")
    assert replayed == sum(evidence.rows(name).height for name in ("pool", "shadow", "takes"))
    assert replayed == next(check.value for check in result.checks if check.name == "rows compared with their source")


@pytest.mark.parametrize("damage", [*UNTRUE, *WORDED], ids=lambda damage: damage.name)
def test_each_false_row_fails_and_is_listed(
    damage: Damage, evidence: Evidence, lines: list[bytes], shadow: Rows, questions: Questions, tmp_path: Path
) -> None:
    rows = [orjson.loads(line) for line in lines]
    intact = [orjson.loads(line) for line in lines]
    damage.do(rows, shadow)
    damaged = {after["id"] for before, after in zip(intact, rows, strict=True) if before != after}
    result = judged(evidence, rows, questions, tmp_path / "rows.jsonl")
    assert result.status is Status.FAILED
    assert {offender["id"] for offender in result.offenders} == damaged
    assert all(offender["found"] != offender["expected"] and offender["where"] for offender in result.offenders)


def test_wrong_gold_in_every_row_fails_even_without_the_source(
    evidence: Evidence, lines: list[bytes], tmp_path: Path
) -> None:
    """The calculations show it: one row may end in another number, all rows may not."""
    rows = [orjson.loads(line) for line in lines]
    replace_gold(first(rows, solved))
    assert judged(evidence, rows, {}, tmp_path / "one.jsonl").status is Status.PASSED
    rows = [orjson.loads(line) for line in lines]
    for row in filter(solved, rows):
        replace_gold(row)
    failed = judged(evidence, rows, {}, tmp_path / "every.jsonl").failures
    assert [check.name for check in failed] == ["word problems whose last sum is not the answer, share"]


def test_an_empty_pool_fails_the_consistency(evidence: Evidence) -> None:
    empty = pl.DataFrame(schema=pl.Schema(ROW_COLUMNS))
    pack = load_pack(evidence.path("templates"))
    found = consistency_gate({"pool": empty}, {}, pack)
    assert found.status is Status.FAILED
    replayed = [one["name"] for one in found.to_dict()["checks"] if one["check_id"] == "semantic.replayability"]
    assert replayed == [f"rows with {kind}" for kind in (Kind.RESULT, Kind.OUTCOME)]
