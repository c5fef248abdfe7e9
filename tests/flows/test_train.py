"""The training as a flow: ticket, segments, reports and evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect.artifacts import Artifact

import tasks.evaluation
import tasks.prepared
from rc1_lib.evaluation.evaluate import evaluate
from rc1_lib.evaluation.gate import ppo_eval_gate
from rc1_lib.evaluation.plays import OF_TRAINING
from rc1_lib.evaluation.report import Provenance, write_evaluation
from rc1_lib.gate_report import GateReport
from rc1_lib.preflight.carried_ticket import carried, why_outdated
from rc1_lib.preflight.ticket import read_ticket, verify_ticket
from rc1_lib.run import Run
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.folder import holding
from tests.conftest import Verdicts
from tests.evaluation.tables import PPO, SFT, Habits, table
from tests.once import copied
from tests.ticketed import ticketed

from .shown import artifacts
from .trainings import LAST, RUN, Ended, alter, cached, checkpoint_hashes, logged, start


def test_training_is_rejected_when_the_initial_policy_cannot_learn(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path
) -> None:
    copied(opened, tmp_path / "workspace")
    run = ticketed(tmp_path / "workspace", built, verdicts, "training.learnability.at_start=24")
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert "so nothing was trained: " in str(state.message)
    assert not run.workspace.path("checkpoints").exists()


def test_prompts_too_few_for_a_verdict_are_refused_before_anything_is_trained(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path
) -> None:
    copied(opened, tmp_path / "workspace")
    run = ticketed(tmp_path / "workspace", built, verdicts, "gates.evaluation.min_group=999")
    state = start(run, evaluate=True)
    assert state.name == "Refused" and "gates.evaluation.min_group" in str(state.message)
    assert not run.workspace.path("checkpoints").exists()


def test_wasted_steps_end_training_with_a_checkpoint_also_after_a_restart(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path
) -> None:
    copied(opened, tmp_path / "workspace")
    cut = ("rollout_len=1", "training.collapse.wasted_patience=2")
    run = ticketed(tmp_path / "workspace", built, verdicts, *cut, "training.segment_steps=4")
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert "ended at step 2 of 4: " in str(state.message)
    assert "% of the episodes are cut" in str(state.message)
    assert "(max_clip_ratio), 2 steps in a row, since step 1" in str(state.message)
    assert run.workspace.path(f"{RUN}/step_00002").is_dir()
    report = read_json(run.workspace.path("reports/train.json"))
    assert (report["pass"], report["state"], report["message"]) == (False, "Refused", state.message)
    assert (report["runs"], report["evaluation"]) == ([], None), "an earlier training's report would stand"
    assert start(run).message == state.message
    assert not run.workspace.path(f"{RUN}/step_00003").exists()


def test_training_that_breaks_says_so_in_its_report_but_not_with_what_words(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise OSError("anything may stand here")

    run = copied(opened, tmp_path / "workspace")
    monkeypatch.setattr("flows.train.trained", breaks)
    assert start(run).is_failed()
    report = read_json(run.workspace.path("reports/train.json"))
    assert (report["pass"], report["message"]) == (False, "ended by a fault (OSError)")


def test_training_is_rejected_when_another_run_holds_the_workspace(opened: Run, tmp_path: Path) -> None:
    run = copied(opened, tmp_path / "workspace")
    with holding(run.workspace, "a preflight"):
        state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert f"a preflight (process {os.getpid()}, since 2" in str(state.message)
    assert not run.workspace.path("checkpoints").exists()


def test_one_altered_byte_of_the_pool_prevents_training(opened: Run, tmp_path: Path) -> None:
    run = copied(opened, tmp_path / "workspace")
    alter(run.workspace.path(run.config.seed_pool))
    state = start(run)
    assert state.name == "Refused"
    assert f"{run.config.seed_pool} has changed" in str(state.message)
    assert not run.workspace.path("checkpoints").exists()


def test_seed_outside_the_ticket_and_resuming_several_seeds_are_rejected(opened: Run, tmp_path: Path) -> None:
    run = copied(opened, tmp_path / "workspace")
    state = start(run, seeds=[5])
    assert state.name == "Refused"
    assert "seed 5 is not in `seeds` (20250820, 20250821, 20250822)" in str(state.message)
    many = start(run, seeds="all", resume_from="latest")
    assert "a checkpoint belongs to one run, but 3 seeds" in str(many.message)


def test_training_runs_every_segment_and_reports_it(done: Ended) -> None:
    assert (done.state.is_completed(), done.state.name) == (True, "PolicyTrained"), done.state.message
    assert list(checkpoint_hashes(done.run)) == ["step_00002", "step_00004"]
    assert logged(done.run) == [1, 2, 3, 4]
    report = done.report
    assert report["runs"][0]["sha256"] == fingerprint(done.run.workspace.path(LAST))
    assert [part["last"] for part in report["runs"][0]["segments"]] == [2, 4]
    assert (cached(done.run), report["evaluation"]) == (0, None)
    assert list(report["seconds"]) == ["ticket", "warm start", "training"]
    assert done.run.workspace.path("logs/train.log").is_file()
    shown = artifacts(done.state)
    assert "asked, not needed" in str(shown["rc1-train-20250820"].data)
    bar = shown["rc1-train-20250820-progress"]
    assert (bar.data, bar.description) == (100.0, "seed 20250820: step 4 of 4")
    assert "rc1-warm-start" in shown


def test_judged_training_uses_the_weights_of_the_ticket(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provided: list[str] = []
    monkeypatch.setattr(tasks.prepared, "provide_scorer_key", lambda run: provided.append(run.config.judge.provider))
    copied(opened, tmp_path / "workspace")
    run = ticketed(tmp_path / "workspace", built, verdicts, "training.reward.judge=0.5")
    state = start(run)
    assert set(provided) == {"rubric"}, "the judge gets the key that a server holds"
    assert (state.is_completed(), state.name) == (True, "PolicyTrained"), state.message
    lines = MetricsLog(run.workspace.path("reports/metrics.jsonl")).read()
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert all(line["judge/scored"] == 1 and 0 < line["reward/judge"] <= 0.5 for line in lines)
    alter(run.workspace.path(run.config.weights))
    closed = start(run)
    assert closed.name == "Refused" and f"{run.config.weights} has changed" in str(closed.message)


def test_policy_that_fails_the_evaluation_fails_the_flow_and_keeps_checkpoints(done: Ended, tmp_path: Path) -> None:
    """An untrained base asks nothing, so its recall is undefined, which fails the gate."""
    run = copied(done.run, tmp_path / "workspace")
    state = start(run, evaluate=True)
    assert (state.is_failed(), state.name) == (True, "GatesFailed"), state.message
    assert "ppo_eval failed: " in str(state.message) and "the checkpoints stay" in str(state.message)
    assert checkpoint_hashes(run) == checkpoint_hashes(done.run)
    report = read_json(run.workspace.path("reports/train.json"))
    assert (report["pass"], report["best"]) == (False, [])
    assert report["ticket"] == carried(read_ticket(run)).model_dump() and why_outdated(report, read_ticket(run)) == ""
    assert "training.learnability.at_start" in {one["key"] for one in report["thresholds_changed"]}, (
        "the changed threshold is reported"
    )
    assert read_json(run.workspace.path(report["evaluation"]))["gate"]["status"] == "failed"
    assert not run.workspace.path(OF_TRAINING).exists(), "the plays go when the report names the evaluation"
    assert not run.workspace.path(f"{RUN}/best").exists()
    card, checks = Artifact.get("rc1-ppo-eval"), Artifact.get("rc1-train-gates")
    assert card is not None and str(card.data).count("(data:image/png;base64,iVBOR") == 3
    assert checks is not None and "FAILED" in str(checks.data)
    evaluated = read_json(run.workspace.path(report["evaluation"]))
    assert evaluated["proxy"]["share"] == 1
    assert "judged score and success, sft / ppo" in str(card.data)


def test_early_stopped_run_is_reported_and_evaluated_at_its_last_step(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path
) -> None:
    copied(opened, tmp_path / "workspace")
    falling = "training.early_stop={metric: lr, patience: 2, higher_is_better: true, not_before: 1}"
    run = ticketed(tmp_path / "workspace", built, verdicts, falling, "training.segment_steps=3")
    state = start(run, evaluate=True)
    assert (state.name, str(state.message).split(";")[0]) == ("GatesFailed", "3 steps of seed 20250820"), state.message
    report = read_json(run.workspace.path("reports/train.json"))
    (trained,), evaluated = report["runs"], read_json(run.workspace.path(report["evaluation"]))
    assert trained["checkpoint"].endswith("step_00003") and trained["sha256"] in str(evaluated)
    bar = Artifact.get("rc1-train-20250820-progress")
    assert bar is not None and bar.description == "seed 20250820: step 3 of 4"
    assert start(run).name == "PolicyTrained" and logged(run) == [1, 2, 3] and cached(run) == 1


def test_control_run_is_evaluated_without_touching_the_real_run(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    real = {name: run.workspace.path(name).read_bytes() for name in ("reports/train.json", "reports/metrics.jsonl")}
    before = checkpoint_hashes(run)
    state = start(run, control="constant", evaluate=True)
    assert (state.is_completed(), state.name) == (True, "ControlPassed"), state.message
    assert {name: run.workspace.path(name).read_bytes() for name in real} == real
    assert checkpoint_hashes(run) == before and not run.workspace.path(f"{RUN}/best").exists()
    assert read_json(run.workspace.path("reports/control_constant.json"))["gate"]["status"] == "passed"
    card = Artifact.get("rc1-control-constant")
    assert card is not None and "constant reward, seed 20250820" in str(card.data)
    verify_ticket(run)
    rejected = start(run, control="random", evaluate=False)
    assert rejected.name == "Refused" and "leave out --no-evaluate" in str(rejected.message)


def of_habits(sft: Habits, ppo: Habits) -> Callable[..., GateReport]:
    """An evaluation of made-up episodes, gated and written as real ones are."""

    def evaluate_run(prepared: Any, _seeds: Any) -> GateReport:
        run, frame = prepared.run, table(sft, ppo)
        found = evaluate(frame, confidence=0.95, resamples=20, seed=1)
        made = Provenance({"sft": "a" * 64}, "c" * 64, "d" * 64, {"temperature": 1.0}, 1)
        gate = ppo_eval_gate(found, run.config.gates.evaluation)
        return write_evaluation(run, found, gate, frame=frame, provenance=made)

    return evaluate_run


def test_improved_policy_is_kept_permanently(done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.evaluation, "evaluate_run", of_habits(SFT, PPO))
    run = copied(done.run, tmp_path / "workspace")
    state = start(run, evaluate=True)
    assert (state.is_completed(), state.name) == (True, "PolicyImproved"), state.message
    assert checkpoint_hashes(run, f"{RUN}/best") == {"step_00004": checkpoint_hashes(done.run)["step_00004"]}
    assert read_json(run.workspace.path("reports/train.json"))["best"] == [f"{RUN}/best/step_00004"]
    assert run.workspace.path("final_model/export.json").is_file()


def test_fault_during_evaluation_fails_the_flow_without_a_verdict(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_prepared: Any, _seeds: Any) -> GateReport:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(tasks.evaluation, "evaluate_run", broken)
    state = start(copied(done.run, tmp_path / "workspace"), evaluate=True)
    assert (state.is_failed(), state.name) == (True, "Failed")
    assert isinstance(state.result(raise_on_failure=False), ZeroDivisionError)
