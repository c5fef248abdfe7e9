"""Offline evaluation compares another program's episodes with the recorded ones and does not change the record."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.answers import played_by
from rc1_lib.evaluation.baselines import ALWAYS, AT_WORDS, NEVER, evaluate_baselines
from rc1_lib.evaluation.episodes import episode_frame, read_episodes, records_of
from rc1_lib.evaluation.evaluate import BASE, TRAINED
from rc1_lib.evaluation.offline import asked_by, by_llama_cpp, by_torch, chat_format, evaluate_offline, recorded
from rc1_lib.evaluation.tables import baseline_rows, figures_rows
from rc1_lib.evaluation.unseen import evaluate_unseen, recorded_policies
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


def unseen(run: Run) -> tuple[dict[str, Any], pl.DataFrame]:
    _, body = evaluate_unseen(run, recorded_policies(run))
    return body, read_episodes(run.workspace.path(body["episodes"]["path"]))


def test_unseen_prompts_are_of_questions_that_neither_training_nor_an_evaluation_asked(copied: Copy) -> None:
    run, _ = copied
    before = gate_files(run)
    body, episodes = unseen(run)
    assert gate_files(run) == before and (body["groups"]["all"], body["earlier_looks"]) == (12, 0)
    (recorded,) = run.workspace.path("reports").glob("ppo_eval_*.episodes.jsonl")
    assert not set(episodes["source_id"]) & set(read_episodes(recorded)["source_id"])
    assert all(is_kept_back({"source_id": one}, run.config) for one in episodes["source_id"])  # type: ignore[typeddict-item]
    assert episodes.group_by("policy", "mode").len()["len"].to_list() == [12] * 4
    table = figures_rows(body, "sampled").markdown()
    assert "asks, needed (recall)" in table and "wanted" not in table
    run.workspace.path("reports/ppo_eval_000000000000.episodes.jsonl").write_text(episodes.write_ndjson())
    run.workspace.path("reports/unseen_000000000000.json").write_text('{"checkpoints": {"5": "of another"}}')
    body, others = unseen(run)
    assert not set(others["source_id"]) & set(episodes["source_id"]) and body["earlier_looks"] == 1
    run.workspace.path("reports/unseen_000000000000.json").write_text("{}")
    with pytest.raises(RC1Error, match=r"unseen_0+\.json: .*checkpoints"):
        unseen(run)


def test_unseen_prompts_are_played_as_those_of_the_evaluation(copied: Copy) -> None:
    run, _ = copied
    body, episodes = unseen(run)
    base, _ = asked_by(run, recorded(run))
    rows = unseen_rows(run, chat_format(run, base), ())
    with by_torch(run, run.workspace.path(CHECKPOINT)).opened(base) as player:
        for mode, temperature in (("sampled", run.config.training.rollout.temperature), ("greedy", 0.0)):
            played = played_by(player, rows, temperature, HELD_OUT_SEED)
            (seed,) = map(int, body["checkpoints"])
            alone = episode_frame(records_of(played, rows, policy=TRAINED, mode=mode, seed=seed))  # type: ignore[arg-type]
            kept = episodes.filter((pl.col("policy") == TRAINED) & (pl.col("mode") == mode))
            assert kept.sort("row_id").equals(alone.sort("row_id"))
    dialogues = run.workspace.path(body["dialogues"]).read_text().splitlines()
    assert len(dialogues) == 24
    started, trained = (episodes.filter(pl.col("policy") == policy)["tokens"].to_list() for policy in (BASE, TRAINED))
    assert started != trained, "both policies play alike, so this test would not see which one played"


def test_other_settings_of_sampling_are_refused(copied: Copy) -> None:
    run, _ = copied
    hotter = tiny_run(run.workspace.root, *OVERRIDES, "training.rollout.temperature=1.5")
    for again in (
        lambda: evaluate_baselines(hotter, hotter.workspace.path(CHECKPOINT)),
        lambda: evaluate_unseen(hotter, recorded_policies(hotter)),
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
