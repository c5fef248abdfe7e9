"""The pool builder is deterministic, disjoint from the shadow set, and records truthfully what the expert did."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from rc1_lib.config.data import Teacher
from rc1_lib.errors import SourceError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.numbers.calculator import calculate
from rc1_lib.numbers.sums import apportion
from rc1_lib.pool.derived import POOL
from rc1_lib.pool.distractors import lend_pages
from rc1_lib.pool.plan import plan_pool
from rc1_lib.pool.seed import SAMPLE_MANIFEST, build_due, build_seed
from rc1_lib.pool.teacher import ask_chance
from rc1_lib.records import Passage, Question, Status, Task
from rc1_lib.rows.frame import read_rows, with_texts
from rc1_lib.run import Run, open_run
from rc1_lib.task_specs import is_right
from rc1_lib.workspace.artifacts import PROJECT_ROOT, FileState, read_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.conftest import SMALL

TEACHER = Teacher(cue_pull=6.0, need_pull=1.0, skip_tool_rate=0.0)


@pytest.fixture(scope="module")
def rows(evidence: Evidence) -> pl.DataFrame:
    return evidence.rows("pool")


def test_pool_bytes_depend_on_the_seed_and_not_on_the_workers(built: Run, tmp_path: Path) -> None:
    again = open_run(workspace=tmp_path, overrides=[*SMALL, "pool.workers=2"])
    build_seed(again, ("shadow", "pool"))
    for relative in (built.config.pool.path, built.config.shadow.path):
        assert sha256_file(built.workspace.path(relative)) == sha256_file(again.workspace.path(relative))


@pytest.mark.parametrize(("task", "questions"), [("strategyqa", 1300), ("gsm8k", 6907)])
def test_published_questions_are_enough_for_the_published_pool(task: Task, questions: int) -> None:
    """All published questions less those held out and a few near duplicates; 1,300 is for a smaller split."""
    config = open_run(workspace=PROJECT_ROOT, profile="prod").config
    held = apportion(config.shadow.n, config.datasets)[task]
    rows = apportion(config.pool.n, config.datasets)[task]
    asked = [Question(f"{task}/{at}", task, task, "en", "Why?", (), (), (), "x") for at in range(questions - held - 15)]
    alone = config.model_copy(update={"datasets": {task: 1.0}, "pool": config.pool.model_copy(update={"n": rows})})
    assert len(plan_pool(alone, asked)) == rows


def test_pool_excludes_the_questions_of_a_hold_out_file(built: Run, tmp_path: Path) -> None:
    """The file was drawn with another seed; without the key the pool would contain some of its questions."""
    few = (*SMALL, "pool.n=300", "shadow.n=60")
    other = open_run(workspace=tmp_path / "other", overrides=(*few, "shadow.seed=5", "sources.use=embedded"))
    build_seed(other, ("pool",))
    hold_out = tmp_path / "hold_out.jsonl"
    lines = other.workspace.path(other.config.pool.path).read_bytes().splitlines(keepends=True)
    hold_out.write_bytes(b"".join(lines[:40]))
    held_out = set(read_rows(hold_out)["source_id"])
    without = open_run(workspace=tmp_path / "without", overrides=few)
    excluding = open_run(workspace=tmp_path / "excluding", overrides=(*few, f"pool.hold_out={hold_out}"))
    found = []
    for run in (without, excluding):
        build_seed(run, ("pool",))
        found.append(held_out & set(read_rows(run.workspace.path(run.config.pool.path))["source_id"]))
    assert found[0] and not found[1]
    assert POOL.state(excluding) is FileState.FRESH
    hold_out.write_bytes(b"".join(lines[:39]))
    assert POOL.state(excluding) is FileState.STALE


def test_pool_and_shadow_share_no_question(evidence: Evidence) -> None:
    keys = [set(evidence.rows(name).select("source", "source_id").rows()) for name in ("pool", "shadow")]
    assert not keys[0] & keys[1]


def test_shadow_set_is_stratified_and_its_manifest_lists_every_row(built: Run, evidence: Evidence) -> None:
    manifest = read_json(built.workspace.path(SAMPLE_MANIFEST))
    assert manifest["strata"] == dict(apportion(built.config.shadow.n, built.config.datasets))
    assert [row["source_id"] for row in manifest["rows"]] == evidence.rows("shadow")["source_id"].to_list()
    assert manifest["sha256"] == sha256_file(built.workspace.path(built.config.shadow.path))


def test_counts_by_task_are_exact(rows: pl.DataFrame, built: Run) -> None:
    counts = dict(rows.group_by("task").len().iter_rows())
    assert counts == dict(apportion(built.config.pool.n, built.config.datasets))


def test_every_calculation_in_the_pool_is_true(rows: pl.DataFrame) -> None:
    checked = 0
    for messages in rows["messages"].to_list():
        results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
        for message in messages:
            for call in message["tool_calls"] or []:
                if call["function"]["name"] == "calc":
                    expression = json.loads(call["function"]["arguments"])["expression"]
                    assert calculate(expression) == results[call["id"]]
                    checked += 1
    assert checked > 500


def test_row_is_solved_only_with_the_right_answer_and_the_missing_information(rows: pl.DataFrame) -> None:
    for row in rows.iter_rows(named=True):
        right = is_right(row["task"], row["final"], row["answer"], row["aliases"])
        obtained = row["asked"] > 0 or not row["needs_clarification"]
        assert row["solved"] == (right and obtained)
        assert row["lucky"] == (right and not obtained)
    assert rows["lucky"].sum() > 0


def test_prompt_does_not_contain_the_missing_information(rows: pl.DataFrame) -> None:
    texts = with_texts(rows.filter("needs_clarification" & (pl.col("slot").struct.field("where") == "story")))
    assert texts.height > 20
    for prompt, slot in texts.select("prompt", "slot").iter_rows():
        words = prompt.replace(",", " ").replace(".", " ").split() if prompt.isascii() else [prompt]
        assert slot["value"] not in words


def test_asking_once_obtains_the_missing_information(rows: pl.DataFrame) -> None:
    asked = rows.filter(pl.col("asked") > 0)
    for row in asked.iter_rows(named=True):
        replies = [message["content"] for message in row["messages"] if message["name"] == "ask_user"]
        assert len(replies) == row["asked"] == 1
        if row["needs_clarification"]:
            assert row["slot"]["value"] in replies[0]


def test_scripted_expert_asks_at_the_configured_rate_and_by_wording_not_need(rows: pl.DataFrame, built: Run) -> None:
    rate = rows["asked"].mean()
    assert abs(rate - built.config.pool.clarify_rate) < 4 * (0.3 * 0.7 / rows.height) ** 0.5
    by_cue = dict(rows.group_by("cue").agg(pl.col("asked").mean()).iter_rows())
    by_need = dict(rows.group_by("needs_clarification").agg(pl.col("asked").mean()).iter_rows())
    assert by_cue[True] > 4 * by_cue[False]
    assert abs(by_need[True] - by_need[False]) < 0.1


def test_need_pull_scales_the_ask_probability_up_to_one() -> None:
    noticing = TEACHER.model_copy(update={"need_pull": 1.5})
    for cue in (True, False):
        chance = ask_chance(0.1, TEACHER, cue=cue, needs=True)
        assert chance == ask_chance(0.1, TEACHER, cue=cue, needs=False)
        assert ask_chance(0.1, noticing, cue=cue, needs=True) == pytest.approx(1.5 * chance)
        assert ask_chance(0.1, noticing, cue=cue, needs=False) == chance
    assert ask_chance(0.9, noticing, cue=True, needs=True) == 1.0


def test_too_few_questions_are_rejected_with_the_keys_to_change(shared_data: Path, tmp_path: Path) -> None:
    own = ("datasets={hotpotqa: 1.0}", f"sources.use={shared_data}", "pool.n=2250")
    run = open_run(workspace=tmp_path, overrides=[*SMALL, *own])
    with pytest.raises(SourceError, match=r"hotpotqa: \d+ .* 2250 .*shadow\.n.*sources\.max_uses"):
        build_seed(run)
    assert not (tmp_path / "data").exists()


def test_gate_accuses_no_row_that_was_built_from_questions_worded_alike(tmp_path: Path) -> None:
    rng, records = random.Random(3), list[str]()
    for _ in range(360):
        name, thing = rng.choice(("Ada", "Ben", "Chloe", "Dan")), rng.choice(("jars", "bolts", "tiles", "lamps"))
        rows, each, given = rng.randint(3, 40), rng.randint(4, 60), rng.randint(2, 11)
        whole = rows * each
        story = f"{name} has {rows} shelves with {each} {thing} on each. {given} {thing} are given away."
        sums = f"{rows}*{each}=<<{rows}*{each}={whole}>>{whole}\n{whole}-{given}=<<{whole}-{given}={whole - given}>>"
        answer = f"{sums}{whole - given}\n#### {whole - given}"
        question = f"{story} How many {thing} does {name} have left?"
        records.append(json.dumps({"question": question, "answer": answer}) + "\n")
    source = tmp_path / "mine/gsm8k/stock.jsonl"
    source.parent.mkdir(parents=True)
    source.write_text("".join(records))
    own = ("datasets={gsm8k: 1.0}", f"sources.use={tmp_path / 'mine'}", "pool.n=250", "shadow.n=60", "pool.workers=1")
    run = open_run(workspace=tmp_path / "workspace", overrides=own)
    build_due(run)
    assert evaluate("leakage", Evidence(run), 1).status is Status.PASSED


def asked_about(at: int, source: str) -> Question:
    pages = (Passage(f"Works {at}", f"Works {at} has its seat in Town {at}."),)
    return Question(f"{source}/{at}", "hotpotqa", source, "en", f"Where is {at}?", (), pages, (), "x")


def test_pages_of_held_out_questions_are_not_used_as_distractors() -> None:
    questions = [asked_about(at, "hotpotqa") for at in range(12)]
    lent = lend_pages(questions[6:], {"hotpotqa": questions}, 1, withheld=questions[:6])
    assert {page.title for borrower in lent for page in borrower.passages} == {f"Works {at}" for at in range(6, 12)}


def test_embedded_questions_neither_lend_nor_borrow_pages() -> None:
    own, other = asked_about(0, "embedded"), asked_about(1, "hotpotqa")
    assert lend_pages([own, other], {"hotpotqa": [own, other]}, 1) == [own, other]
