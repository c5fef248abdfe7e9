"""The examples of `docs/how-to` do what the pages say: their code is read from the pages and run."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.environment.replay import inconsistencies
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.gates.training_config import training_gate
from rc1_lib.judge.calls import Ask
from rc1_lib.pool.seed import build_seed
from rc1_lib.records import Status
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.schema import check_rows
from rc1_lib.run import open_run, published_config
from rc1_lib.sources.local import load_local
from rc1_lib.sources.rows import load_rows
from rc1_lib.task_specs import registered
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.pages import BLOCK, HOW_TO, example, run


def test_every_python_block_compiles() -> None:
    for page in (HOW_TO.parent / "tutorial.md", *sorted(HOW_TO.glob("*.md"))):
        for block in BLOCK.findall(page.read_text("utf-8")):
            compile(block, page.name, "exec")


def test_custom_source_example_writes_readable_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(example("own-source.md", '"""Write own questions'))
    loaded = load_local(tmp_path / "mine", ["gsm8k"])["gsm8k"]
    assert len(loaded.questions) == 200
    assert loaded.skipped == {}


def test_shown_record_of_every_task_is_a_question(tmp_path: Path) -> None:
    page = (HOW_TO / "own-source.md").read_text("utf-8")
    tasks = ("gsm8k", "strategyqa", "hotpotqa")
    for task, record in zip(tasks, page.split("```json\n")[1].split("```")[0].splitlines(), strict=True):
        (tmp_path / task).mkdir()
        (tmp_path / task / "one.jsonl").write_text(record + "\n")
    loaded = load_local(tmp_path, tasks)
    assert {task: len(loaded[task].questions) for task in tasks} == dict.fromkeys(tasks, 1)


def test_custom_model_example_passes_the_training_gate(tmp_path: Path) -> None:
    page = (HOW_TO / "real-model.md").read_text("utf-8")
    (tmp_path / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    shutil.copy(PROJECT_ROOT / "configs" / "ppo_scale.yaml", tmp_path)
    config = open_run(config=tmp_path / "mine.yaml", workspace=tmp_path).config
    assert config.sources.use == "my_questions" and not config.pays_judged_score
    assert training_gate(config).status is Status.PASSED


def test_tutorial_damage_adds_100_rows_under_new_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pool = tmp_path / "try" / "data" / "rollouts" / "rc1_seed.jsonl"
    pool.parent.mkdir(parents=True)
    pool.write_text("".join(json.dumps({"id": f"row-{at}", "answer": at}) + "\n" for at in range(120)))
    run(example("../tutorial.md", '"""Copy a hundred rows'))
    rows = [json.loads(line) for line in pool.read_text().splitlines()]
    assert len({row["id"] for row in rows}) == 220
    assert [row["answer"] for row in rows[120:]] == list(range(100))


def test_custom_dialogue_example_writes_consistent_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(example("own-source.md", '"""Turn own support dialogues'))
    rows = check_rows(read_rows(tmp_path / "rows.jsonl"), tmp_path / "rows.jsonl")
    assert rows["solved"].to_list() == [True, True]
    assert rows["asked"].to_list() == [0, 1]
    assert [list(inconsistencies(row)) for row in rows.iter_rows(named=True)] == [[], []]
    assert len(load_rows(tmp_path / "rows.jsonl", ["gsm8k"])["gsm8k"].questions) == 2


def test_custom_task_example_reads_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = run(example("own-task.md", '"""Fact checking'))["SPEC"]
    run(example("own-task.md", '"""Write own records'))
    with registered(spec):
        loaded = load_local(tmp_path / "own", ["factcheck"])["factcheck"]
    assert len(loaded.questions) == 80
    for question in loaded.questions:
        assert question.slot is not None
        assert spec.is_right(question.answer, question.answer, question.aliases)
        assert not spec.is_right("no" if question.answer == "yes" else "yes", question.answer, question.aliases)


def test_task_in_30_lines_goes_through_the_gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = example("own-task.md", '"""Spare parts')
    assert len(code.strip().splitlines()) < 36
    with registered():  # it registers its task itself
        run(code)
        mix = ["sources.use=shop", "datasets={parts: 1.0}", "pool.n=40", "shadow.n=10", "pool.workers=1"]
        opened = open_run(workspace="try", overrides=mix)
        build_seed(opened)
        evidence = Evidence(opened)
        gates = ("mix", "length", "duplicates", "leakage", "consistency", "missing_piece", "answer_rule", "diversity")
        found = {name: evaluate(name, evidence, 1).status for name in gates}
        needing = evidence.rows("pool")["needs_clarification"].sum()
    assert found.pop("diversity") is Status.FAILED
    assert set(found.values()) == {Status.PASSED}
    assert needing > 5


def test_data_set_by_its_columns_is_a_configuration(tmp_path: Path) -> None:
    page = (HOW_TO / "own-source.md").read_text("utf-8")
    (tmp_path / "any.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    for name in ("local.yaml", "ppo_scale.yaml"):
        shutil.copy(PROJECT_ROOT / "configs" / name, tmp_path)
    config = open_run(config=tmp_path / "any.yaml", workspace=tmp_path).config
    assert set(config.datasets) == {"any_text", "any_verdict", "any_number"} <= set(config.sources.hub)
    assert config.sources.columns == {"any_text": {"answer": "answers.text"}, "any_verdict": {"context": "passage"}}


def test_faulty_rule_example_fails_as_the_page_says() -> None:
    names = run(example("own-task.md", '"""Try an answer rule'))
    assert names["found"].wrong_paid.low > 0.005
    assert {"not Norstead", "Norstead or Dundale"} <= set(names["paid"])
    assert "all_candidates" in names["worst"]


def test_examples_of_the_page_on_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in BLOCK.findall((HOW_TO / "notebook.md").read_text("utf-8")):
        names |= run(block, names)
    assert names["written"] == ("shadow", "takes", "pool")
    assert names["length"].status is Status.PASSED
    assert names["verdict"].status is Status.FAILED
    assert {name for name in names["at_fault"] if name.endswith("-copy")} == {
        f"{name}-copy" for name in names["pool"].head(30)["id"]
    }
    assert names["calibration"].gate.status is Status.PASSED
    assert abs(sum(names["weights"].values()) - 1.0) < 1e-9
    assert names["by_trl"] == [names["by_verl"]] == [names["rated"].reward]
    assert "there is no ticket" in names["refusal"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(("final", "grade"), [("It is 3. Answer: 3", 1.0), ("I do not know.", 0.0)])
def test_custom_judge_example_grades_every_dimension(final: str, grade: float) -> None:
    judge = run(example("own-judge.md", '"""A judge that grades'))["Keyword"]()
    ask = Ask(
        system="", user="", schema={"required": ["reason", "answered", "concise"]},
        sampling=published_config().judge.sampling, attempt_id="a", idempotency_key="b",
        messages=[{"role": "assistant", "content": final}],
    )  # fmt: skip
    answer = asyncio.run(judge.ask(ask))
    reply = json.loads(answer.text)
    assert {name: value for name, value in reply.items() if name != "reason"} == {"answered": grade, "concise": grade}
    assert not answer.billable
