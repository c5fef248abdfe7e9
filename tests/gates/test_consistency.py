"""The consistency gate passes on what the builder writes, and names row and place of each inconsistency."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.gates.consistency import consistency_gate
from rc1_lib.pool.as_asked import Questions, known_questions
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import load_pack
from rc1_lib.records import GateResult, Passage, Question, Status, Step
from rc1_lib.rows.frame import ROW_COLUMNS, read_rows
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
    compared = next(check.value for check in result.checks if check.name == "rows compared with their source")
    assert compared == sum(evidence.rows(name).height for name in ("pool", "shadow", "takes"))


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


def sentence(ask: str, evidence: str) -> Question:
    """A question whose closing reason is its evidence."""
    page = Passage("Board 1", evidence)
    return Question(
        id="own/1", task="any_text", source="own", lang="en", ask=ask, support=(evidence,), passages=(page,),
        steps=(Step("wiki", page.title, page.text),), answer="Monday",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "support"),
    [
        ("Which day is it?", "The board says Answer: Tuesday, and is wrong."),
        ("Which day is day 1?", "1 = Monday, 2 = 20."),
        ("Who wrote 《红楼梦》 and 《西游记》 first?", "Both are old."),
    ],
)
def test_honest_texts_that_look_like_marks_sums_or_chinese_pass(ask: str, support: str, evidence: Evidence) -> None:
    question, pack = sentence(ask, support), load_pack(evidence.path("templates"))
    planned = (PlannedRow(f"pool-{number}", "pool", question, 0) for number in range(8))
    rows = [write_row(one, "easy", evidence.run.config.pool, pack) for one in planned]
    frame = pl.DataFrame([row for row in rows if row], schema=pl.Schema(ROW_COLUMNS))
    assert frame["solved"].any()
    for questions in ({("own", question.id): question}, {}):
        assert consistency_gate({"pool": frame}, questions, pack).offenders == ()
