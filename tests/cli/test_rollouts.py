"""`rc1 audit-rollouts` and `rc1 rescore`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from rc1_lib.run import open_run
from tests.evaluation.tables import PPO, SFT, table

from .conftest import Rc1, records, widest_table_line

TEXT = (
    "The harbour master counts every crate twice before he writes the total down, and number {} is no exception today."
)


@pytest.fixture
def rollouts(tmp_path: Path) -> Path:
    """Ten prompts of four rollouts; two in three are right, and style is paid the other way round."""
    path = tmp_path / "rollouts.jsonl"
    lines = [
        {
            "input": f"Question {number // 4}: how many crates are there?", "output": f"{TEXT.format(number)} #### 7",
            "gts": "7" if number % 3 else "8", "score": 0.5, "accuracy": float(number % 3 > 0), "style": number % 4 / 4,
        }
        for number in range(40)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_audit_prints_a_table_writes_a_report_and_exits_2_when_a_check_fails(
    rc1: Rc1, tmp_path: Path, rollouts: Path
) -> None:
    done = rc1("audit-rollouts", rollouts, "--workspace", tmp_path, "--json")
    body = json.loads(done.out)
    failed = [gate["name"] for gate in body["gates"] if gate["status"] == "failed"]
    assert (done.code, failed, body["rollouts"]["form"]) == (2, ["groups", "proxy"], "verl")
    assert json.loads((tmp_path / body["report"]).read_text())["gates"] == body["gates"]
    listed = next(gate["offenders_file"] for gate in body["gates"] if gate["name"] == "groups")
    assert len(records(tmp_path / listed)) == 10
    (tmp_path / "held_out.jsonl").write_text('{"question": "Who painted the old lighthouse of the northern bay?"}\n')
    flags = ("--reward-key", "accuracy", "--held-out", "held_out.jsonl")
    mended = rc1("audit-rollouts", rollouts, "--workspace", tmp_path, *flags)
    assert mended.code == 0 and widest_table_line(mended.out) <= 100


def test_rule_of_a_task_judges_the_answers_of_another_trainer(rc1: Rc1, tmp_path: Path, rollouts: Path) -> None:
    flags = ("--workspace", tmp_path, "--task", "gsm8k", "--reward-key", "accuracy", "--json")
    body = json.loads(rc1("rescore", rollouts, *flags).out)
    assert body["changed"]["rows"] == 0, "their accuracy is what the rule says"


def test_evaluated_episodes_are_paid_by_other_settings_than_those_of_their_run(rc1: Rc1, tmp_path: Path) -> None:
    settings = ("training.reward.judge=0", "training.reward.success=1")
    open_run(profile="local", workspace=tmp_path, overrides=settings).write_effective_config()
    frame = table(SFT, PPO)
    (tmp_path / "episodes.jsonl").write_text(frame.write_ndjson(), encoding="utf-8")
    flags = ("rescore", "episodes.jsonl", "--workspace", tmp_path)
    same = rc1(*flags)
    assert same.code == 2 and "--set" in same.err
    body = json.loads(rc1(*flags, "--set", "overclar.alpha=0.4", "--json").out)
    needless = frame.filter(~pl.col("needs") & (pl.col("asked") > 0))
    assert body["by"] == {"--set": ["overclar.alpha=0.4"]}
    assert body["rows"]["down"] == body["changed"]["rows"] == needless.height > 0
    assert set(body["score"]) == {"all", "sft", "ppo"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--task", "gsm8k", "--judge"), "--task and --judge"),
        (("--task", "chess"), "chess"),
        ((), "recorded"),
        (("--formula", ""), "--formula"),
    ],
)
def test_rescoring_says_what_it_needs(
    rc1: Rc1, tmp_path: Path, rollouts: Path, flags: tuple[str, ...], words: str
) -> None:
    done = rc1("rescore", rollouts, "--workspace", tmp_path, *flags)
    assert done.code == 2 and words in done.err and "Traceback" not in done.err
    assert not list(tmp_path.glob("reports/rescore_*"))
