"""Controls: rewards without information, their separate files, and an evaluation that must find no gain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import rc1_lib.evaluation.control as control_module
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.evaluation.control import compare, control_gate, run_control
from rc1_lib.evaluation.episodes import EvaluationError, episode_frame, records_of
from rc1_lib.records import Status
from rc1_lib.run import Run
from rc1_lib.training.another_run import AnotherRunError
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.retention import keep_permanently
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.control import Control, Controlled
from rc1_lib.training.ppo_run import Prepared, prepare, resumable
from rc1_lib.workspace.artifacts import read_json
from tests.training.tiny_world import tiny_run

SMALL = ("gates.evaluation.min_prompts=1", "gates.shared.resamples=20", "training.control.steps=3")
LAST = "checkpoints/controls/random/checkpoints/rc1/step_00003"


@pytest.fixture(scope="module")
def done(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A control of a tiny run, evaluated. Never write into it."""
    root = tmp_path_factory.mktemp("control") / "workspace"
    shutil.copytree(tiny_workspace, root)
    run = tiny_run(root, *SMALL)
    torch.set_num_threads(1)
    run_control(prepare(run), "random", run.config.seeds[:1], lambda _: None)
    return run


def files_below(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


# ---- the reward ----


class Plays:
    """A strategy that rewards what was done in the episodes."""

    def attach_engine(self, engine: Any) -> None:
        self.engine = engine

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        batch["scores"] = [float(word == "good") for word in batch["done"]]
        return {"env/success": 0.5, "reward/success": 0.5}


def scored(kind: Any, done: Sequence[str], seed: int = 1, step: int = 3) -> tuple[list[float], dict[str, float]]:
    batch: dict[str, Any] = {"step": step, "done": done}
    found = Controlled(Plays(), Control(kind), seed).on_batch(batch)
    return batch["scores"], found


@pytest.mark.parametrize("kind", ["random", "constant"])
def test_control_reward_is_independent_of_the_episode(kind: str) -> None:
    good, figures = scored(kind, ["good"] * 40)
    assert good == scored(kind, ["bad"] * 40)[0] == scored(kind, ["good", "bad"] * 20)[0]
    assert figures == {"env/success": 0.5, "reward/control": sum(good) / 40}


# ---- its files ----


def test_control_writes_its_own_report_and_no_file_of_a_real_run(done: Run, tiny_workspace: Path) -> None:
    new = files_below(done.workspace.root) - files_below(tiny_workspace)
    outside = {name for name in new if not name.startswith("checkpoints/controls/random/")}
    assert {name for name in outside if not name.startswith("reports/rc1/")} == {"reports/control_random.json"}
    assert f"{LAST}/adapter.safetensors" in new
    report = read_json(done.workspace.path("reports/control_random.json"))
    assert (report["kind"], report["steps"], report["pass"]) == ("random", 3, True)
    (one,) = report["checkpoints"].values()
    assert one == {"path": LAST, "sha256": fingerprint(done.workspace.path(LAST))}
    lines = MetricsLog(done.workspace.path("checkpoints/controls/random/reports/metrics.jsonl")).read()
    assert [line["objective/scores"] for line in lines] == pytest.approx([line["reward/control"] for line in lines])


def test_control_checkpoint_can_neither_resume_a_real_run_nor_be_kept(done: Run) -> None:
    real, step = prepare(replace(done, config=done.config.model_copy(update={"steps": 3}))), done.workspace.path(LAST)
    assert load_checkpoint(step).values["control"] == "random"
    assert real.facts(1)["control"] is None
    with pytest.raises(AnotherRunError, match=r"[:,] control\b"):
        resumable(real, done.config.seeds[0], str(step))
    with pytest.raises(CheckpointError, match=r"\(rc1 train --control random\)"):
        keep_permanently(step, step.parent)
    assert not (step.parent / "best").exists()


def test_finished_control_without_its_metrics_is_named_before_anything_is_played(
    done: Run, tiny: Callable[..., Run]
) -> None:
    run = tiny(*SMALL)
    controls = run.workspace.path("checkpoints/controls")
    shutil.copytree(done.workspace.path("checkpoints/controls"), controls, symlinks=True)
    (metrics,) = controls.rglob("metrics.jsonl")
    metrics.unlink()
    with pytest.raises(EvaluationError, match=r"metrics.jsonl: has no line of the control's last step"):
        run_control(prepare(run), "random", run.config.seeds[:1], lambda _: None)


# ---- an evaluation that leaks ----


def played(row: Mapping[str, Any], says: str) -> Any:
    """An episode in which a policy answers at once, without a question to the user."""
    limits = Limits(turns=8, tokens=400, tool_errors=2, malformed=1, calls=5, turn_chars=2000, argument_chars=300)
    episode = Episode(World(row), limits)  # type: ignore[arg-type]
    episode.send({"role": "assistant", "content": f"Answer: {says}"})
    return SimpleNamespace(row_id=row["id"], outcome=episode.outcome())


def reads(row: Mapping[str, Any]) -> str:
    """The answer of a policy that only reads: it finds the answer if it leaked into its prompt."""
    _, mark, answer = str(row["messages"][-1]["content"]).rpartition("The answer is ")
    return answer if mark else "unknown"


def with_answer(row: Mapping[str, Any]) -> dict[str, Any]:
    opening = [one for one in row["messages"] if one["role"] in ("system", "user")][:2]
    leaked = {**opening[-1], "content": f"{opening[-1]['content']} The answer is {row['answer']}"}
    return {**row, "messages": [*opening[:-1], leaked]}


@dataclass
class Reader:
    """A player whose policy only reads, at the temperature of sampled episodes."""

    temperature: float = 1.0

    def load_adapter(self, adapter: Any) -> None:
        assert adapter


def test_evaluation_on_warm_start_prompts_is_rejected(done: Run) -> None:
    prepared = prepare(done)
    leaking = replace(prepared, selection=replace(prepared.selection, held_out=prepared.selection.train[:12]))
    with pytest.raises(EvaluationError, match=r"^12 prompts .*'"):
        run_control(leaking, "random", done.config.seeds[:1])


def test_leak_into_the_second_evaluation_fails_the_whole_control(
    done: Run, tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second policy gets the same prompts with the answer appended."""
    plays: list[int] = []

    def leaking(prepared: Prepared, _player: Any, _temperature: float) -> list[Any]:
        plays.append(1)
        rows = [{**row, "messages": row["messages"][:2]} for row in prepared.selection.held_out]
        return [played(row, reads(with_answer(row) if len(plays) > 1 else row)) for row in rows]

    monkeypatch.setattr(control_module, "player_of", lambda *_: nullcontext(Reader()))
    monkeypatch.setattr(control_module, "episodes_of", leaking)
    run = tiny(*SMALL)
    shutil.copytree(
        done.workspace.path("checkpoints/controls"), run.workspace.path("checkpoints/controls"), symlinks=True
    )
    found = run_control(prepare(run), "random", run.config.seeds[:1], lambda _: None)
    assert found.gate.status is Status.FAILED
    assert read_json(run.workspace.path("reports/control_random.json"))["pass"] is False


def test_control_gate_fails_if_the_policy_did_not_move(done: Run) -> None:
    rows = prepare(done).selection.held_out
    unmoved = [played({**row, "messages": row["messages"][:2]}, "unknown") for row in rows]
    records = [
        one for policy in ("sft", "control") for one in records_of(unmoved, rows, policy=policy, mode="sampled", seed=1)
    ]
    gate = control_gate("constant", compare(done, episode_frame(records)), {1: 0.0}, 1)
    assert [check.name for check in gate.failures] == ["constant reward, seed 1: KL to the start, nats an episode"]
    found = compare(done, episode_frame(records))
    assert control_gate("constant", found, {1: 1.0}, 13).status is Status.ERROR


def test_right_answers_without_asking_fail_the_control(done: Run) -> None:
    """Success cannot show such a leak: where something is missing, an answer without a question is never solved."""
    rows = prepare(done).selection.held_out
    unmoved = [played({**row, "messages": row["messages"][:2]}, "unknown") for row in rows]
    records = [
        one for policy in ("sft", "control") for one in records_of(unmoved, rows, policy=policy, mode="sampled", seed=1)
    ]
    (found,) = compare(done, episode_frame(records)).values()
    up = {**found.change, "right": replace(found.change["right"], value=3.0, low=1.0, high=5.0)}
    gate = control_gate("constant", {1: replace(found, change=up)}, {1: 1.0}, 1)
    assert [check.name for check in gate.failures] == ["constant reward, seed 1: right answers up for certain, pp"]
