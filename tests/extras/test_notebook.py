"""Functions for notebooks: the page's examples run unchanged, and wrong input is an error with a remedy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rc1_lib
from rc1_lib.errors import ConfigError, RC1Error, RowError, TicketError
from rc1_lib.extras import notebook
from rc1_lib.records import Check, GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.answer_rules import plain_rules
from tests.pages import BLOCK, HOW_TO, run


def test_examples_of_the_notebook_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in BLOCK.findall((HOW_TO / "notebook.md").read_text("utf-8")):
        names |= run(block, names)
    assert names["pools"].written == ("shadow", "takes", "pool", "metrics", "balanced")
    assert names["by_task"]["count"].sum() == 400
    assert names["verdicts"].passed
    assert {one.name: one.status for one in names["damaged"].results} == {
        "duplicates": Status.FAILED,
        "length": Status.PASSED,
    }
    assert set(names["failed"]["gate"]) == {"duplicates"}
    assert {name for name in names["at_fault"] if name.endswith("-copy")} == {
        f"{name}-copy" for name in names["pools"].pool["id"].head(30)
    }
    assert names["status"] is Status.PASSED and names["first"].threshold == 0.5
    assert not names["rule"].passed
    assert names["worst_kinds"]["share"].to_list() == [1.0] * 5
    assert (
        names["scores"].complete and names["scores"].rows["id"].to_list() == names["pools"].shadow["id"][:20].to_list()
    )
    assert names["one"].rows.height == 1 and names["worst"].height == 3
    assert names["weights"].written == tmp_path / "notebook" / "configs" / "weights.json"
    assert abs(names["weights"].weights["weight"].sum() - 1.0) < 1e-9
    assert names["by_trl"] == [names["by_verl"]] == [names["rated"].reward]
    assert 0 < names["by_verl"] < 1
    assert "there is no ticket" in names["refusal"]
    assert [path.name for path in tmp_path.iterdir()] == ["notebook"]


def test_importing_the_package_loads_no_module_of_it() -> None:
    code = (
        "import sys, rc1_lib; print([name for name in sys.modules if name.startswith(('rc1_lib.', 'polars', 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_package_exports_the_notebook_functions() -> None:
    assert sorted({*notebook.__all__, "__version__"}) == sorted(rc1_lib.__all__)
    assert all(getattr(rc1_lib, name) is getattr(notebook, name) for name in notebook.__all__)
    assert set(rc1_lib.__all__) <= set(dir(rc1_lib))
    with pytest.raises(AttributeError, match="no attribute 'build_pols'"):
        rc1_lib.build_pols  # noqa: B018


@pytest.fixture(scope="module")
def pool(built: Run) -> pl.DataFrame:
    return notebook.read_rows(built.workspace.path(built.config.seed_pool)).head(20)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda rows: rows.drop("final", "answer"), "column (answer, final|final, answer)"),
        (lambda rows: rows.head(0), "no rows"),
        (lambda rows: rows.with_columns(asked=pl.lit("often")), "'asked' .*String.*Int64"),
        (lambda rows: rows.with_columns(split=pl.lit("shadow")), "split 'shadow'"),
        (lambda rows: pl.concat([rows, rows.head(1)]), "frame 'pool'.*id"),
    ],
    ids=["missing columns", "no rows", "wrong type", "wrong split", "duplicate id"],
)
def test_frame_that_is_not_a_pool_is_rejected(built: Run, pool: pl.DataFrame, change: Any, error: str) -> None:
    with pytest.raises(RowError, match=error):
        notebook.run_gates(built, change(pool), gates=["length"])


def test_gate_that_needs_more_than_rows_is_rejected(built: Run, pool: pl.DataFrame) -> None:
    assert notebook.verdicts.ROW_GATES == ("mix", "length", "diversity", "duplicates", "leakage", "answer_rule")
    for gates, error in ((["weights"], "'weights'"), ([], "no gate")):
        with pytest.raises(ConfigError, match=error):
            notebook.run_gates(built, pool, gates=gates)


def test_shadow_set_may_be_given_as_a_frame(built: Run, pool: pl.DataFrame) -> None:
    """The pool's own rows as the shadow set are the plainest leak."""
    leaking = notebook.run_gates(
        built, pool, gates=["leakage"], shadow=pool.with_columns(split=pl.lit("shadow"), id="shadow-" + pl.col("id"))
    )
    assert [one.status for one in leaking.results] == [Status.FAILED]
    assert set(leaking.offenders["id"]) == set(pool["id"])


def test_dialogues_are_scored_on_a_running_event_loop(built: Run, pool: pl.DataFrame, tmp_path: Path) -> None:
    here = open_run(profile="local", workspace=tmp_path, overrides=built.overrides)

    async def cell() -> notebook.Scores:
        return notebook.score_dialogues(here, pool.head(3))

    scored = asyncio.run(cell())
    assert scored.complete and scored.rows["id"].to_list() == pool["id"].head(3).to_list()
    assert "grounded" in scored.card().html()
    for dialogues, error in (
        (pool.drop("messages"), "column 'messages'"),
        ([], "no dialogues"),
        ([[{"role": "user", "content": "?"}]], "assistant"),
    ):
        with pytest.raises(RowError, match=error):
            notebook.score_dialogues(here, dialogues)  # type: ignore[arg-type]


def test_altered_pool_is_rejected_before_anything_is_written(tmp_path: Path) -> None:
    here = open_run(profile="local", workspace=tmp_path, overrides=["pool.n=40", "shadow.n=20"])
    foreign = tmp_path / here.config.difficulty.balanced_path
    foreign.parent.mkdir(parents=True)
    foreign.write_text("{}\n")
    with pytest.raises(RC1Error, match=r"rc1_seed\.balanced\.jsonl: .*rc1 difficulty-bucketize --rebuild"):
        notebook.build_pool(here)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [foreign]


def test_ticket_lists_its_files_and_a_changed_setting_is_rejected(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = notebook.verify_ticket(opened)
    assert ticket.signed_by is None and ticket.expires > ticket.issued
    assert {"pool", "weights", "base"} <= set(ticket.files["name"])
    assert "judge_agreement" in ticket.waived and "not signed" in repr(ticket)
    other = open_run(profile="local", workspace=opened.workspace.root, overrides=[*opened.overrides, "pool.seed=99"])
    with pytest.raises(TicketError, match=r"\(pool\.seed .*99.* 3\)"):
        notebook.verify_ticket(other)


def test_row_content_is_escaped_in_html() -> None:
    """A row's id comes from a file that anyone may have written."""
    check = Check("rows <b>apart</b>", 1.0, "<=", 0.0, False, advice="<script>alert(1)</script>")
    card = notebook.Verdicts((GateResult("length", (check,), offenders=({"id": "<i>", "reason": "r"},)),)).card()
    assert "<script>" not in card.html() and "&lt;script&gt;" in card.html()
    assert "gates FAILED: length failed" in card.text()


def test_sound_rule_passes_and_faulty_rule_is_shown_with_its_kinds() -> None:
    golds = ["72", {"answer": "5", "aliases": ["five"]}, "1200"]
    sound = notebook.check_answer_rule(plain_rules.sound_number, golds)
    assert sound.passed and sound.offenders.is_empty() and sound.kinds["failed"].sum() == 0
    faulty = notebook.check_answer_rule(plain_rules.deaf_to_signs, pl.DataFrame({"answer": ["72", "5", "1200"]}))
    assert not faulty.passed
    assert set(faulty.offenders["kind"]) == {"other_sign", "typeset_other_sign"}
    assert faulty.kinds["kind"].head(2).sort().to_list() == ["other_sign", "typeset_other_sign"]
    assert "number: gates FAILED" in repr(faulty) and "<table>" in faulty._repr_html_()


@pytest.mark.parametrize(
    ("golds", "error"),
    [([], "no gold answer"), (["5", 7], "gold 1: .*'7'"), ([{"answer": None}], "gold 0: `answer`")],
)
def test_invalid_golds_are_rejected_with_their_position(golds: list[Any], error: str) -> None:
    with pytest.raises(RowError, match=error):
        notebook.check_answer_rule(plain_rules.sound_number, golds)
