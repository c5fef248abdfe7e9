"""Offline evaluation compares another program's episodes with the recorded ones and does not change the record."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.baselines import ALWAYS, AT_WORDS, NEVER, evaluate_baselines
from rc1_lib.evaluation.episodes import read_episodes
from rc1_lib.evaluation.evaluate import BASE
from rc1_lib.evaluation.offline import by_llama_cpp, by_torch, chat_format, evaluate_offline
from rc1_lib.evaluation.tables import baseline_rows, figures_rows
from rc1_lib.evaluation.unseen import evaluate_unseen
from rc1_lib.extras.rollouts.read import read_rollouts
from rc1_lib.run import Run
from rc1_lib.training.export.gguf_export import export_gguf
from rc1_lib.training.export.gguf_file import GGUFType
from rc1_lib.training.rows import is_kept_back, unseen_rows
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.once import copy_of
from tests.training.export.conftest import OVERRIDES, Exported
from tests.training.tiny_world import tiny_run

Copy = tuple[Run, Path]
CHECKPOINT = "checkpoints/rc1/step_00002"


@pytest.fixture(scope="session")
def with_gguf(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same workspace with the policy as a GGUF file too. Never write into it: use `copied`."""

    def make(root: Path) -> None:
        shutil.copytree(exported[0].workspace.root, root, dirs_exist_ok=True, symlinks=True)
        export_gguf(tiny_run(root, *OVERRIDES), root / "policy", root / "f32", GGUFType.F32, 2)

    return copy_of("exported_gguf", make, tmp_path_factory)


@pytest.fixture
def copied(with_gguf: Path, tmp_path: Path) -> Copy:
    """A run in a copy of that workspace, and its GGUF file."""
    root = shutil.copytree(with_gguf, tmp_path / "copied", symlinks=True)
    return tiny_run(root, *OVERRIDES), root / "f32/f32.gguf"


def gate_files(run: Run) -> dict[str, str]:
    """The hashes of the gate's report and its files."""
    found = [*run.workspace.path("reports").rglob("ppo_eval*"), run.workspace.path("reports/train.json")]
    return {run.workspace.name(path): sha256_file(path) for path in found if path.is_file()}


def recorded_and_repeated(run: Run, body: dict[str, Any], mode: str) -> list[pl.DataFrame]:
    episodes = read_episodes(run.workspace.path(body["episodes"]["path"])).filter(pl.col("mode") == mode)
    return [
        episodes.filter(pl.col("policy") == policy).drop("policy", "judged").sort("row_id")
        for policy in ("recorded", body["engine"])
    ]


def test_torch_repeats_the_recorded_episodes_and_writes_no_gate_file(copied: Copy) -> None:
    run, _ = copied
    before = gate_files(run)
    path, body = evaluate_offline(run, by_torch(run, run.workspace.path(CHECKPOINT)))
    assert len(before) > 4 and gate_files(run) == before
    assert Path(path).name.startswith("offline_torch_") and body["asked"] == 12
    for mode in ("sampled", "greedy"):
        recorded, again = recorded_and_repeated(run, body, mode)
        assert recorded.height == 12 and again.equals(recorded)


def test_baselines_answer_the_recorded_prompts(copied: Copy) -> None:
    run, _ = copied
    before = gate_files(run)
    path, body = evaluate_baselines(run, run.workspace.path(CHECKPOINT))
    assert gate_files(run) == before and read_json(run.workspace.path(path))["prompts"] == 12
    assert list(body["baselines"]) == [NEVER, ALWAYS, AT_WORDS, BASE]
    episodes = read_episodes(run.workspace.path(body["episodes"]["path"]))
    assert episodes.filter(pl.col("policy") == NEVER)["asked"].sum() == 0
    form, spoken = read_rollouts(run.workspace.path(body["dialogues"]), reward="solved")
    assert form == "OpenAI" and spoken.height == 36
    begun = spoken["written"].str.contains("ask_user", literal=True)
    assert 12 <= begun.sum() < 24, "a question is begun where it was decided, whatever becomes of it"
    table = baseline_rows(body).markdown()
    assert all(name in table for name in (*body["baselines"], "trained"))


def test_unseen_prompts_are_of_questions_that_neither_training_nor_evaluation_asked(copied: Copy) -> None:
    run, _ = copied
    before = gate_files(run)
    _, body = evaluate_unseen(run, run.workspace.path(CHECKPOINT))
    assert gate_files(run) == before and body["groups"]["all"] == 12
    episodes = read_episodes(run.workspace.path(body["episodes"]["path"]))
    (recorded,) = run.workspace.path("reports").glob("ppo_eval_*.episodes.jsonl")
    assert not set(episodes["source_id"]) & set(read_episodes(recorded)["source_id"])
    assert all(is_kept_back({"source_id": one}, run.config) for one in episodes["source_id"])  # type: ignore[typeddict-item]
    assert episodes.group_by("policy", "mode").len()["len"].to_list() == [12] * 4
    assert "asks, needed (recall)" in figures_rows(body, "sampled").markdown()
    fewer = tiny_run(run.workspace.root, *OVERRIDES, "training.held_out.prompts=100000")
    with pytest.raises(RC1Error, match=r"nobody has looked at; lower training\.held_out\.prompts"):
        unseen_rows(fewer, chat_format(fewer, str(run.workspace.path("base"))))


def test_other_settings_of_sampling_are_refused(copied: Copy) -> None:
    run, _ = copied
    hotter = tiny_run(run.workspace.root, *OVERRIDES, "training.rollout.temperature=1.5")
    for again in (
        lambda: evaluate_baselines(hotter, hotter.workspace.path(CHECKPOINT)),
        lambda: evaluate_unseen(hotter, hotter.workspace.path(CHECKPOINT)),
        lambda: evaluate_offline(hotter, by_torch(hotter, hotter.workspace.path(CHECKPOINT))),
    ):
        with pytest.raises(RC1Error, match=r"temperature"):
            again()


def test_some_prompts_are_of_every_task(copied: Copy) -> None:
    run, _ = copied
    _, body = evaluate_baselines(run, run.workspace.path(CHECKPOINT), 6)
    assert len(set(read_episodes(run.workspace.path(body["episodes"]["path"]))["task"])) > 1


def changed_file(run: Run, file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def manifest_of_another_checkpoint(run: Run, file: Path) -> None:
    manifest = file.parent / "gguf.json"
    body = read_json(manifest)
    write_json(manifest, {**body, "checkpoint": {**body["checkpoint"], "sha256": "0" * 64}})


def changed_record(run: Run, file: Path) -> None:
    (report,) = run.workspace.path("reports").glob("ppo_eval_????????????.json")
    report.write_text(report.read_text().replace('"greedy"', '"greedi"', 1))


def changed_episodes(run: Run, file: Path) -> None:
    (episodes,) = run.workspace.path("reports").glob("ppo_eval_*.episodes.jsonl")
    episodes.write_text(episodes.read_text().replace("false", "true", 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed_file, r"f32\.gguf: .*verif"),
        (manifest_of_another_checkpoint, r"reports/ppo_eval_\w+\.json .*evaluate .*checkpoint"),
        (changed_record, r"ppo_eval_\w+\.json: .*altered"),
        (changed_episodes, r"episodes\.jsonl: .* reports/ppo_eval_\w+\.json, "),
    ],
)
def test_changed_policy_or_record_is_rejected(copied: Copy, damage: Callable[[Run, Path], None], message: str) -> None:
    run, file = copied
    damage(run, file)
    with pytest.raises(RC1Error, match=message):
        evaluate_offline(run, by_llama_cpp(run, file), 1)
    assert not list(run.workspace.path("reports").glob("offline_*"))
