"""Evaluating once more, by another program: the record is what is compared with, and stays what it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.cli import main
from rc1_lib.config.file import load_config
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.evaluation.episodes import read_episodes
from rc1_lib.evaluation.offline import by_llama_cpp, by_torch, evaluate_offline
from rc1_lib.run import Run
from rc1_lib.training.export.gguf_export import export_gguf
from rc1_lib.training.export.gguf_file import GGUFType
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.once import copy_of
from tests.training.export.conftest import OVERRIDES, Exported
from tests.training.tiny_world import OVERRIDES as TINY
from tests.training.tiny_world import tiny_run

Copy = tuple[Run, Path]
CHECKPOINT = "checkpoints/rc1/step_00002"


@pytest.fixture(scope="session")
def handed(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same workspace with the policy as a GGUF file too. Never write into it: take `own`."""

    def make(root: Path) -> None:
        shutil.copytree(exported[0].workspace.root, root, dirs_exist_ok=True, symlinks=True)
        export_gguf(tiny_run(root, *OVERRIDES), root / "policy", root / "f32", GGUFType.F32, 2, ids_only=True)

    return copy_of("handed_over_gguf", make, tmp_path_factory)


@pytest.fixture
def own(handed: Path, tmp_path: Path) -> Copy:
    """A workspace of the test's own, and the GGUF file in it."""
    root = shutil.copytree(handed, tmp_path / "own", symlinks=True)
    return tiny_run(root, *OVERRIDES), root / "f32/f32.gguf"


def of_the_gate(run: Run) -> dict[str, str]:
    """The gate's own report and its files."""
    found = [*run.workspace.path("reports").rglob("ppo_eval*"), run.workspace.path("reports/train.json")]
    return {run.workspace.name(path): sha256_file(path) for path in found if path.is_file()}


def sides(run: Run, body: dict[str, Any], mode: str) -> list[pl.DataFrame]:
    episodes = read_episodes(run.workspace.path(body["episodes"]["path"])).filter(pl.col("mode") == mode)
    return [
        episodes.filter(pl.col("policy") == policy).drop("policy", "judged").sort("row_id")
        for policy in ("recorded", body["engine"])
    ]


def test_pytorch_plays_what_is_on_record_and_writes_none_of_the_gates_files(own: Copy) -> None:
    run, _ = own
    before = of_the_gate(run)
    path, body = evaluate_offline(run, by_torch(run, run.workspace.path(CHECKPOINT)))
    assert len(before) > 4 and of_the_gate(run) == before
    assert Path(path).name.startswith("offline_torch_") and body["asked"] == 12
    for mode in ("sampled", "greedy"):
        recorded, again = sides(run, body, mode)
        assert recorded.height == 12 and again.equals(recorded)


@pytest.mark.long
def test_llama_cpp_plays_greedily_what_is_on_record_and_samples_by_its_own_numbers(own: Copy) -> None:
    run, file = own
    before = of_the_gate(run)
    _, body = evaluate_offline(run, by_llama_cpp(run, file))
    assert of_the_gate(run) == before
    greedy, sampled = sides(run, body, "greedy"), sides(run, body, "sampled")
    assert greedy[1].equals(greedy[0])
    assert not sampled[1].equals(sampled[0]) and sampled[1]["row_id"].equals(sampled[0]["row_id"])
    assert set(body["modes"]["greedy"]["by"]["task"]) == set(greedy[0]["task"])
    _, again = evaluate_offline(run, by_llama_cpp(run, file), 4)
    assert again["asked"] == 4 and again["modes"]["sampled"]["overall"]["prompts"] == 4


def another_byte(run: Run, file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def another_checkpoint(run: Run, file: Path) -> None:
    manifest = file.parent / "gguf.json"
    told = read_json(manifest)
    write_json(manifest, {**told, "checkpoint": {**told["checkpoint"], "sha256": "0" * 64}})


def no_manifest(run: Run, file: Path) -> None:
    (file.parent / "gguf.json").unlink()


def altered_record(run: Run, file: Path) -> None:
    (report,) = run.workspace.path("reports").glob("ppo_eval_????????????.json")
    report.write_text(report.read_text().replace('"greedy"', '"greedi"', 1))


def altered_episodes(run: Run, file: Path) -> None:
    (episodes,) = run.workspace.path("reports").glob("ppo_eval_*.episodes.jsonl")
    episodes.write_text(episodes.read_text().replace("false", "true", 1))


def another_start(run: Run, file: Path) -> None:
    run.workspace.path("base/generation_config.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (another_byte, r"f32\.gguf: .*verif"),
        (another_checkpoint, r"reports/ppo_eval_\w+\.json .*evaluate .*checkpoint"),
        (no_manifest, r"gguf\.json: .*manifest .*GGUF"),
        (altered_record, r"ppo_eval_\w+\.json: .*altered"),
        (altered_episodes, r"episodes\.jsonl: .* reports/ppo_eval_\w+\.json, "),
        (another_start, r"trained .* base; "),
    ],
)
def test_what_is_not_the_judged_policy_or_its_record_is_refused(
    own: Copy, damage: Callable[[Run, Path], None], said: str
) -> None:
    run, file = own
    damage(run, file)
    with pytest.raises(RC1Error, match=said):
        evaluate_offline(run, by_llama_cpp(run, file), 1)
    assert not list(run.workspace.path("reports").glob("offline_*"))


def test_other_prompts_than_were_asked_are_refused(own: Copy) -> None:
    run, file = own
    other = tiny_run(run.workspace.root, *OVERRIDES, "training.held_out.prompts=9")
    with pytest.raises(RC1Error, match=r"reports/ppo_eval_\w+\.json: .*held-out prompts"):
        evaluate_offline(other, by_llama_cpp(other, file))


def test_the_command_shows_success_by_task_and_refuses_what_it_cannot_play(
    own: Copy, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = own

    def rc1(*arguments: str) -> int:
        flags = [part for override in (*TINY, *OVERRIDES) for part in ("--set", override)]
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", *arguments, "--workspace", str(run.workspace.root), *flags])
        return int(ended.value.code or 0)

    assert rc1("f32/f32.gguf", "--engine", "gguf", "--prompts", "4") == 0
    shown = capsys.readouterr().out
    assert "greedy, recorded / gguf" in shown and "gsm8k" in shown and "offline_gguf_" in shown
    assert rc1("latest", "--engine", "vllm") == 2
    assert rc1("latest", "--engine", "gguf") == 2
    said = capsys.readouterr().err
    assert "'vllm' is not one of 'torch'" in said and "expected the path of a .gguf file" in said


def test_no_run_can_be_trained_by_it(exported: Exported) -> None:
    with pytest.raises(ConfigError, match=r"training\.engine: .*'gguf', .*\(rc1 evaluate --engine gguf\).*torch_ppo"):
        load_config(exported[0].config_path, ["training.engine=gguf"])
