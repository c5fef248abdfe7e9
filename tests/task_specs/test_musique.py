"""A fourth task in MuSiQue's format works from records to environment, and no file of RC1 names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib import task_specs
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.world import World
from rc1_lib.errors import ConfigError, RowError, SourceError, TaskError, TemplateError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate as judge
from rc1_lib.pool.seed import build_seed
from rc1_lib.pool.templates import load_pack
from rc1_lib.records import Status
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run, open_run
from rc1_lib.sources.local import load_local
from rc1_lib.task_specs import SHIPPED, register, registered, task_names, task_spec
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.environment.worlds import LIMITS, call
from tests.task_specs.musique import SPEC, parse

HERE = Path(__file__).parent
RECORDS = [json.loads(line) for line in (HERE / "musique.jsonl").read_text(encoding="utf-8").splitlines()]


def overrides(root: Path) -> tuple[str, ...]:
    return (
        "datasets={musique: 1.0}", f"sources.use={root / 'public'}", "pool.n=12", "shadow.n=3", "pool.workers=1",
        f"pool.templates_dir={root / 'pack_v2'}", f"pool.reference_templates_dir={root / 'pack_v1'}",
    )  # fmt: skip


@pytest.fixture(autouse=True)
def registered_task() -> Iterator[None]:
    with registered(SPEC):
        yield


@contextmanager
def unregistered() -> Iterator[None]:
    """Unregister the task, as in a process that does not register it."""
    with registered():
        task_specs._REGISTRY.pop("musique")
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the public file, and both packs with templates of the new kind."""
    root = tmp_path_factory.mktemp("musique")
    (root / "public" / "musique").mkdir(parents=True)
    shutil.copy(HERE / "musique.jsonl", root / "public" / "musique" / "train.jsonl")
    for pack in ("v1", "v2"):
        shutil.copytree(PROJECT_ROOT / "templates" / f"pack_{pack}", root / f"pack_{pack}")
        shutil.copy(HERE / "packs" / f"composed.{pack}.en.json", root / f"pack_{pack}")
    return root


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    with registered(SPEC):
        run = open_run(profile="local", workspace=root / "workspace", overrides=overrides(root))
        build_seed(run)
        write_metrics(run)
        write_balanced(run)
    return run


@pytest.fixture(scope="module")
def rows(run: Run) -> pl.DataFrame:
    return read_rows(run.workspace.path(run.config.pool.path))


def rows_of_task(rows: pl.DataFrame) -> list[dict[str, Any]]:
    return rows.filter(pl.col("task") == "musique").to_dicts()


def test_lookups_follow_the_order_of_the_decomposition() -> None:
    question = parse(RECORDS[2], 2, "train")
    assert [step.argument for step in question.steps] == ["Mount Tarrick", "Wend", "Casmer"]
    assert question.support[1] == "It joins the river Casmer below the old toll bridge."
    assert (question.answer, question.aliases) == ("Vellmouth", ("port of Vellmouth",))
    assert question.slot is not None and question.slot.value == "Mount Tarrick"
    assert {page.title for page in question.passages[3:]} == {"Mount Sille", "Little Ambry", "Lake Hoon"}


def test_malformed_record_is_rejected_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "musique").mkdir()
    broken = {**RECORDS[0], "question_decomposition": [{"question": "Who?"}]}
    (tmp_path / "musique" / "dev.jsonl").write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(SourceError, match=r"dev\.jsonl, line 1: .*'question_decomposition'"):
        load_local(tmp_path, ["musique"])


def test_pool_has_the_task_in_templates_of_its_kind(rows: pl.DataFrame, run: Run) -> None:
    assert dict(rows.group_by("task").len().iter_rows()) == {"musique": 12}
    pack = load_pack(run.workspace.find(run.config.pool.templates_dir))
    composed = {template.id for template in pack.select("composed", "en")}
    assert pack.counts()["en"]["composed"] == len(composed) == 2
    for row in rows_of_task(rows):
        assert row["cue"] or row["template_id"] in composed
        assert row["id"].startswith("pool-musique-")
        assert row["solved"] == (
            task_spec("musique").is_right(row["final"], row["answer"], row["aliases"])
            and (row["asked"] > 0 or not row["needs_clarification"])
        )


@pytest.mark.parametrize("name", ["shadow_set", "mix", "leakage"])
def test_gates_pass_and_report_the_task(name: str, run: Run) -> None:
    result = judge(name, Evidence(run), 1)
    assert (result.status, result.error, result.failures) == (Status.PASSED, "", ())
    if name in ("mix", "leakage"):
        assert any(check.name.endswith("[musique]") for check in result.checks)


def test_rows_of_the_task_are_measured_and_balanced(run: Run) -> None:
    """Twelve rows are too few for a verdict on difficulty, so that it may be either."""
    assert set(Evidence(run).rows("balanced")["task"]) == {"musique"}
    result = judge("difficulty", Evidence(run), 1)
    assert not result.error
    assert "balanced share[musique]" in {check.name for check in result.checks}


def play(row: dict[str, Any], answer: str) -> Episode:
    """An episode that reads the pages of the hops, asks if something is missing, and answers."""
    episode = Episode(World(row), LIMITS)
    titles = [page["title"] for page in row["passages"]]
    episode.say(call("wiki", title=titles[0]) + "\n" + call("wiki", title=titles[1]))
    if row["needs_clarification"]:
        episode.say(call("ask_user", question=f"Could you tell me {row['slot']['wanted']}?"))
    episode.say(f"Answer: {answer}")
    return episode


def test_episode_is_checked_by_the_rule_of_the_task(rows: pl.DataFrame) -> None:
    for row in rows_of_task(rows):
        for answer in (row["answer"], f"the {row['answer'].upper()}!", *row["aliases"]):
            outcome = play(row, answer).outcome()
            assert (outcome.right, outcome.solved, outcome.tool_errors) == (True, True, 0)
        assert not play(row, row["passages"][0]["title"]).outcome().right


def test_unregistered_task_is_rejected_everywhere(rows: pl.DataFrame, root: Path) -> None:
    row = rows_of_task(rows)[0]
    with unregistered():
        with pytest.raises(ConfigError, match=r"datasets\.musique: .*'musique'; .*hotpotqa"):
            open_run(profile="local", workspace=root / "other", overrides=overrides(root))
        shipped = ", ".join(spec.name for spec in SHIPPED)
        with pytest.raises(RowError, match=f"'musique' .*'en'.* {shipped} "):
            World(row)
        with pytest.raises(TemplateError, match=r"'kind' .*\"composed\"; .*'maths', 'multihop'"):
            load_pack(root / "pack_v2")
        with pytest.raises(TaskError, match=r"'musique'; .*hotpotqa, strategyqa, gsm8k"):
            load_local(root / "public", ["musique"])


def test_duplicate_or_invalid_task_name_is_rejected() -> None:
    assert task_names() == (*(spec.name for spec in SHIPPED), "musique")
    register(SPEC)
    assert task_names().count("musique") == 1
    with pytest.raises(TaskError, match="'musique'"):
        register(replace(SPEC, label="Another"))
    with pytest.raises(TaskError, match="'Mu SiQue'"):
        replace(SPEC, name="Mu SiQue")


def test_library_does_not_name_the_task() -> None:
    source = [path for name in ("rc1_lib", "tasks", "flows") for path in (PROJECT_ROOT / name).rglob("*.py")]
    assert len(source) > 200
    assert [path for path in source if "musique" in path.read_text(encoding="utf-8").lower()] == []
