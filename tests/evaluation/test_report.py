"""What an evaluation writes: a report that names its inputs, tables that fit, example dialogues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from rc1_lib.evaluation.chance import Chance
from rc1_lib.evaluation.evaluate import Evaluation, evaluate
from rc1_lib.evaluation.examples import dialogue_lines, examples_markdown
from rc1_lib.evaluation.gate import CHECK_OF, GROUPS, PROMPTS, clear_check, ppo_eval_gate, task_check
from rc1_lib.evaluation.report import Provenance, evaluation_key, write_evaluation
from rc1_lib.evaluation.tables import figures_rows, needed_rows
from rc1_lib.gate_report import GateReport
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import FileState, file_state, read_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.evaluation.tables import table

FROM = Provenance(
    checkpoints={"sft": "a" * 64, "ppo": "b" * 64},
    base_sha256="c" * 64,
    prompts_sha256="d" * 64,
    sampling={"temperature": 1.0},
    seed=7,
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return open_run(profile="local", workspace=tmp_path, overrides=("gates.evaluation.min_prompts=100",))


CHANCE = Chance(0.214, {"hotpotqa": 0.04, "strategyqa": 0.5, "gsm8k": 0.1})


def evaluated(frame: pl.DataFrame) -> Evaluation:
    return evaluate(frame, confidence=0.95, resamples=20, seed=7, chance=CHANCE)


def written(run: Run, frame: pl.DataFrame, **extra: Any) -> GateReport:
    evaluation = evaluated(frame)
    gate = ppo_eval_gate(evaluation, run.config.gates.evaluation)
    return write_evaluation(run, evaluation, gate, frame=frame, provenance=FROM, **extra)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    folder = tmp_path_factory.mktemp("report")
    run = open_run(profile="local", workspace=folder)
    return read_json(folder / written(run, table()).report)


def test_report_names_all_its_inputs_and_outputs(run: Run) -> None:
    frame = table(prompts=540)
    step = written(run, frame, examples="# two dialogues\n")
    report = read_json(run.workspace.path(step.report))
    assert step.passed and report["pass"] is True
    assert step.report == f"reports/ppo_eval_{report['key']}.json"
    assert report["checkpoints"] == FROM.checkpoints
    assert (report["base_sha256"], report["prompts_sha256"], report["seed"]) == ("c" * 64, "d" * 64, 7)
    assert report["decided_by"] == "sampled"
    episodes = run.workspace.path(report["episodes"]["path"])
    assert sha256_file(episodes) == report["episodes"]["sha256"]
    assert run.workspace.path(report["examples"]).read_text() == "# two dialogues\n"
    assert all(run.workspace.path(file).exists() for file in step.plots.values())
    assert {"gates.evaluation.min_prompts"} <= {item["key"] for item in report["thresholds_changed"]}
    assert file_state(run.workspace, step.report, kind="ppo_eval") is FileState.FRESH
    verdict = GateResult.from_dict({**report["gate"], "offenders": ()})
    assert verdict.status is Status.PASSED
    assert {check.name for check in verdict.checks if check.op != "info"} == {
        PROMPTS, *GROUPS.values(), *CHECK_OF.values(),
        *(check(task) for task in ("hotpotqa", "strategyqa", "gsm8k") for check in (task_check, clear_check)),
    }  # fmt: skip


def test_key_changes_with_checkpoint_seed_episodes_and_threshold(run: Run) -> None:
    found = evaluated(table(prompts=27))
    strict = open_run(profile="local", workspace=run.workspace.root, overrides=("gates.evaluation.max_turns_up=-1",))
    keys = [
        evaluation_key(run, FROM, found),
        evaluation_key(run, replace(FROM, checkpoints={**FROM.checkpoints, "ppo": "e" * 64}), found),
        evaluation_key(run, replace(FROM, seed=8), found),
        evaluation_key(run, FROM, evaluated(table(prompts=27, seed=2))),
        evaluation_key(strict, FROM, found),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == evaluation_key(run, FROM, evaluated(table(prompts=27)))


def test_chance_is_next_to_right_without_asking(report: Mapping[str, Any]) -> None:
    rows = [row[0] for row in figures_rows(report, "sampled").rows]
    assert rows.index("  chance") == rows.index("right without asking") + 1
    needed = {row[0]: row for row in needed_rows(report, "sampled").rows}
    assert needed["all"][-2:] == ("29 / 35", "21")
    assert [needed[task][-1] for task in ("hotpotqa", "strategyqa", "gsm8k")] == ["4", "50", "10"]
    unknown = {**report, "chance": None}
    assert {row[-1] for row in needed_rows(unknown, "sampled").rows} == {"none"}


def dialogue(words: str) -> list[dict[str, Any]]:
    call = {"id": "call_0", "type": "function", "function": {"name": "ask_user", "arguments": '{"question": "Which?"}'}}
    return [
        {"role": "system", "content": "the rules"},
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": words, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "name": "ask_user", "content": "The red ones."},
    ]


def examples(words: str = "Let me ask.", per_kind: int = 1) -> str:
    frame = table(prompts=54)
    spoken = {(policy, row_id): dialogue(words) for policy, row_id in frame.select("policy", "row_id").iter_rows()}
    return examples_markdown(frame, spoken, before="sft", after="ppo", per_kind=per_kind)


def test_examples_show_both_policies_and_count_every_kind() -> None:
    text = examples()
    frame = table(prompts=54).filter(pl.col("mode") == "sampled")
    sides = [frame.filter(pl.col("policy") == name).sort("row_id") for name in ("sft", "ppo")]
    learned = (sides[0]["needs"] & ~sides[0]["solved"] & sides[1]["solved"]).sum()
    assert learned > 0
    assert f"## Something was missing: unsolved before, solved now: {learned} of 54 prompts" in text
    assert text.count("**sft**") == text.count("**ppo**") >= 3
    assert '    -> ask_user {"question": "Which?"}' in text
    assert "the rules" not in text
    assert "**sft**: right, but without what was missing, questions to the user: 0" in examples(per_kind=9)


def test_all_dialogues_are_written_in_an_order_that_is_random_and_always_the_same(run: Run) -> None:
    frame = table(prompts=54)
    spoken = {(policy, row_id): dialogue(row_id) for policy, row_id in frame.select("policy", "row_id").iter_rows()}
    report = read_json(run.workspace.path(written(run, frame, dialogues=dialogue_lines(frame, spoken)).report))
    lines = run.workspace.path(report["dialogues"]).read_bytes()
    assert lines == dialogue_lines(frame.sample(fraction=1.0, shuffle=True, seed=1), spoken)
    found = [orjson.loads(line) for line in lines.splitlines()]
    assert len(found) == 108 and all(one["messages"] == dialogue(one["row_id"]) for one in found)
    first = found[:30]
    assert {one["policy"] for one in first} == {"sft", "ppo"} and len({one["task"] for one in first}) == 3
    assert {one["mode"] for one in found} == {"sampled"}
    assert [one["row_id"] for one in found] != sorted(one["row_id"] for one in found)


def test_model_text_cannot_close_its_code_block() -> None:
    text = examples("```\n# forged\n`````")
    fences = [line for line in text.splitlines() if line.startswith("``````")]
    assert fences and len(fences) % 2 == 0
