"""Every check of the doctor passes in a sound workspace, and only the matching ones fail after damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from deployments.server import free_port
from rc1_lib.checks import at_most
from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.doctor import endpoints
from rc1_lib.doctor.finding import Finding
from rc1_lib.doctor.looks import LOOKS, examined
from rc1_lib.forecast.learnability import REPORT
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.training import memory
from rc1_lib.training.checkpoint.manifest import folder_name
from rc1_lib.training.checkpoint.save_load import save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.ppo_run import configured_facts
from rc1_lib.training.run_paths import CHECKPOINTS, LEDGER
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.training.vllm_double import served

from .conftest import with_settings


def failed_looks(run: Run) -> set[str]:
    return {name for name, one in examined(run).items() if one.failed}


def everything(root: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in root.rglob("*")}


def missing_balanced_pool(run: Run) -> None:
    BALANCED.path(run).unlink()


def damaged_balanced_pool(run: Run) -> None:
    path = BALANCED.path(run)
    path.write_bytes(path.read_bytes() + b"{}\n")


def cut_metrics(run: Run) -> None:
    path = METRICS.path(run)
    path.write_bytes(path.read_bytes()[:-30])


def failed_learnability(run: Run) -> None:
    flat = at_most("flat", 1.0, 0.9, "sample hotter")
    report = {
        "pass": False,
        "time": "2026-01-02",
        "config_sha256": run.config_sha256,
        "gate": GateResult("learnability", (flat,)).to_dict(),
    }
    write_json(run.workspace.path(REPORT), report)


def missing_tokenizer(run: Run) -> None:
    run.workspace.path("base/tokenizer.json").unlink()


def negative_hidden_size(run: Run) -> None:
    path = run.workspace.path("base/config.json")
    write_json(path, {**read_json(path), "hidden_size": -1})


def test_sound_workspace_passes_every_check_and_nothing_is_written(opened: Run) -> None:
    before = everything(opened.workspace.root)
    found = examined(opened)
    assert {name: one.advice for name, one in found.items() if one.failed} == {}
    assert list(found) == list(LOOKS)
    assert everything(opened.workspace.root) == before


@pytest.mark.parametrize(
    ("damage", "failed", "words"),
    [
        (missing_balanced_pool, {"ticket", "rows"}, "there is no balanced pool"),
        (damaged_balanced_pool, {"ticket", "rows"}, "balanced.jsonl"),
        (cut_metrics, {"ticket", "rows"}, "metrics.jsonl: not a file of metrics"),
        (failed_learnability, {"learnability"}, f"{REPORT}: it failed: flat is 1, wanted <= 0.9 sample hotter; then"),
        (missing_tokenizer, {"ticket", "base", "engine", "chat_contract", "memory"}, "lacks tokenizer.json"),
        (negative_hidden_size, {"ticket", "engine", "memory"}, "describes no valid model"),
    ],
)
def test_damage_fails_the_matching_checks_and_is_named(
    own: Run, damage: Callable[[Run], None], failed: set[str], words: str
) -> None:
    damage(own)
    found = examined(own)
    assert {name for name, one in found.items() if one.failed} == failed
    assert any(words in f"{one.found} {one.advice}" for one in found.values())


@pytest.mark.parametrize(
    ("settings", "failed"),
    [
        (("gates.resources.min_free_gb=1e9",), "disk"),
        (("judge.provider=openai", "judge.model=m", "judge.base_url=http://127.0.0.1:{closed}/v1"), "judge"),
        (("training.enable_thinking=false",), "chat_contract"),
        (("training.adapter.targets=[q_proj, q_norm]",), "engine"),
    ],
)
def test_impossible_settings_fail_the_matching_check(own: Run, settings: tuple[str, ...], failed: str) -> None:
    chosen = [one.format(closed=free_port()) for one in settings]
    # The ticket is for other settings, so it fails too.
    assert failed_looks(with_settings(own, *chosen)) == {*failed.split(), "ticket"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("batch_size=16",), "detected by max_kl, min_entropy, max_same_answer"),
        (
            ("batch_size=16", "training.engine=trl_dpo", "training.strategy=groups"),
            "detected by max_kl, max_same_answer, but not by min_entropy, "
            "which a step of 16 with trl_dpo does not measure",
        ),
    ],
)
def test_collapse_bound_that_no_step_measures_is_reported(opened: Run, settings: tuple[str, ...], words: str) -> None:
    found = LOOKS["engine"](with_settings(opened, *settings)).found
    assert found.endswith(f"a collapse is {words}")


def test_too_little_memory_fails(opened: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 16 kB\nMemAvailable:    64 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    found = examined(opened)
    assert {name for name, one in found.items() if one.failed} == {"memory"}
    assert "does not fit" in found["memory"].advice


def test_missing_key_of_the_judge_is_named_and_a_key_is_not_shown(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    live = ("judge.provider=openai", "judge.model=m", "judge.base_url=https://judge.example.com/v1")
    run = with_settings(opened, *live)
    lacking = LOOKS["judge"](run)
    assert lacking.failed and "SCORER_API_KEY is not set" in lacking.advice
    assert "uses the Prefect secret rc1-scorer-api-key" in lacking.advice
    assert "the doctor only reads the environment" in lacking.advice
    unpaid = with_settings(run, "training.reward.judge=0", "training.reward.success=1")
    assert LOOKS["judge"](unpaid) == Finding(f"none: {unpaid.config.why_not_judged}")
    monkeypatch.setenv("SCORER_API_KEY", "sk-very-secret")
    monkeypatch.setattr(endpoints, "unreachable", lambda address: "")
    there = LOOKS["judge"](run)
    assert there == Finding("openai at judge.example.com answers")
    assert "very-secret" not in f"{lacking}{there}"


def sampled_by(run: Run, address: str) -> Run:
    return with_settings(run, "training.rollout.sampler=vllm", f"training.vllm.base_url={address}")


def test_vllm_server_is_checked_if_it_samples_and_its_models_are_named(opened: Run) -> None:
    assert LOOKS["vllm"](opened) == Finding("none: training.rollout.sampler is own")
    base = opened.workspace.path("base")
    with served(base) as double:
        found = LOOKS["vllm"](sampled_by(opened, double.base_url))
        assert not found.failed and f"serves '{base}', 1,024 tokens" in found.found
        double.change = lambda path, body, answer: (401, "Unauthorized")
        found = LOOKS["vllm"](sampled_by(opened, double.base_url))
        assert found.failed and "rejects /models (HTTP 401" in found.found and "RC1_VLLM_API_KEY" in found.advice
        double.change = lambda path, body, answer: (200, {"data": []})
        found = LOOKS["vllm"](sampled_by(opened, double.base_url))
        assert found.failed and "found no model" in found.found and "step" not in found.found
        asked = {path for path, body in double.asked}
        assert asked == {"models", "load_lora_adapter"} and not any(body for _, body in double.asked), (
            "the doctor sends no adapter"
        )


def saved(run: Run, step: int, **other: Any) -> Path:
    """A checkpoint of this run, except for the given facts."""
    facts = configured_facts(run, run.config.seeds[0]) | {
        "pool": sha256_file(run.workspace.path(run.config.seed_pool)), **other,
    }  # fmt: skip
    state = CheckpointState({"adapter": {"a": torch.ones(3)}}, {**facts, "step": step})
    return save_checkpoint(state, run.workspace.path(CHECKPOINTS), run.workspace.path(LEDGER))


def test_resume_step_is_the_newest_whole_checkpoint_of_this_run(own: Run) -> None:
    assert LOOKS["resume"](own).found.startswith("from the start")
    saved(own, 2)
    path = saved(own, 3)
    assert "seed 20250820: from step 3; seed 20250821: from the start" in LOOKS["resume"](own).found
    other = saved(own, 4, seed=1)
    found = LOOKS["resume"](own)
    assert found.failed and "seed 20250820: refused" in found.found
    assert "step_00004: belongs to another run, these differ: seed. " in found.advice and "--start-over" in found.advice
    shutil.rmtree(other)
    (path / "adapter.safetensors").write_bytes(b"torn")
    torn = LOOKS["resume"](own)
    assert torn.failed and "from step 2" in torn.found and folder_name(3) in torn.advice
