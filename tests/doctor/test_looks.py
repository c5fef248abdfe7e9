"""Every check of the doctor passes in a sound workspace, and only the matching ones fail after damage."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch

from deployments.server import free_port
from rc1_lib.doctor import endpoints, machine
from rc1_lib.doctor.base_files import read_base
from rc1_lib.doctor.disk import checkpoint_bytes, trained_parameters
from rc1_lib.doctor.finding import Finding
from rc1_lib.doctor.looks import LOOKS, examined
from rc1_lib.doctor.signatures import misfits, policy_fault
from rc1_lib.errors import ConfigError
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run, open_run
from rc1_lib.training import memory
from rc1_lib.training.api import Engine, Setup
from rc1_lib.training.checkpoint.manifest import folder_name
from rc1_lib.training.checkpoint.retention import count_saved, keep_rule_of, most_at_once
from rc1_lib.training.checkpoint.save_load import save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.engines.torch_ppo import TorchPPO
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


def revoked_ticket(run: Run) -> None:
    revoke_ticket(run, "a test")


def file_instead_of_logs(run: Run) -> None:
    run.workspace.path("logs").write_text("")


def truncated_base(run: Run) -> None:
    weights = run.workspace.path("base/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1])


def missing_tokenizer(run: Run) -> None:
    run.workspace.path("base/tokenizer.json").unlink()


def vocab_size_as_a_list(run: Run) -> None:
    path = run.workspace.path("base/config.json")
    write_json(path, {**read_json(path), "vocab_size": [1]})


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
        (revoked_ticket, {"ticket"}, "it was revoked"),
        (file_instead_of_logs, {"folders"}, "logs is not a folder"),
        # Checks that read the base fail too, and so does the ticket, which pins it.
        (truncated_base, {"ticket", "base", "engine", "chat_contract", "disk", "memory"}, "was truncated or altered"),
        (missing_tokenizer, {"ticket", "base", "engine", "chat_contract", "disk", "memory"}, "lacks tokenizer.json"),
        (vocab_size_as_a_list, {"ticket", "engine", "chat_contract", "memory"}, "cannot be loaded (Strict"),
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
        (("steps=1000000000", "training.checkpoints.every_steps=1"), "disk"),
        (("judge.provider=openai", "judge.model=m", "judge.base_url=http://127.0.0.1:{closed}/v1"), "judge"),
        (("gates.reward_hacking.own=[own/two.py]",), "signatures"),
        (("training.enable_thinking=false",), "chat_contract"),
        (("training.adapter.targets=[q_proj, q_norm]",), "engine"),
        (("training.adapter.targets=[q_proj, lm_head]",), "engine"),  # the embedding too: it is not in the files
    ],
)
def test_impossible_settings_fail_the_matching_check(own: Run, settings: tuple[str, ...], failed: str) -> None:
    policy = own.workspace.path("own/two.py")
    policy.parent.mkdir()
    policy.write_text('def play(scene, more):\n    """Takes too much."""\n')
    chosen = [one.format(closed=free_port()) for one in settings]
    # The ticket is for other settings, so it fails too.
    assert failed_looks(with_settings(own, *chosen)) == {*failed.split(), "ticket"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("batch_size=16",), "detected by max_kl, min_entropy, max_same_answer"),
        (("training.collapse.max_kl=null", "training.collapse.max_same_answer=null"), "detected by min_entropy"),
        (
            ("batch_size=15",),
            "detected by max_kl, min_entropy, but not by max_same_answer, "
            "which a step of 15 with torch_ppo does not measure",
        ),
        (
            ("batch_size=16", "training.engine=trl_dpo", "training.strategy=groups"),
            "detected by max_kl, max_same_answer, but not by min_entropy, "
            "which a step of 16 with trl_dpo does not measure",
        ),
    ],
)
def test_collapse_bound_that_no_step_measures_is_reported(opened: Run, settings: tuple[str, ...], words: str) -> None:
    bounds = [f"training.collapse.{one}" for one in ("max_kl=1", "min_entropy=0.01", "max_same_answer=0.6")]
    found = LOOKS["engine"](with_settings(opened, *bounds, *settings)).found
    assert found.endswith(f"a collapse is {words}")


def test_unreachable_prefect_server_fails(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{free_port()}/api")
    assert failed_looks(opened) == {"prefect"}


def test_too_little_memory_fails(opened: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 16 kB\nMemAvailable:    64 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    found = examined(opened)
    assert {name for name, one in found.items() if one.failed} == {"memory"}
    assert "does not fit" in found["memory"].advice


def test_untested_version_fails(opened: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text("orjson==0.0.1\n")
    monkeypatch.setattr(machine, "_CONSTRAINTS", str(pins))
    found = machine.look_at_versions(opened)
    assert found.failed and "tested with 0.0.1" in found.found
    installed = {"torch": "2.13.0+cpu", "trl": "1.0"}
    assert machine.version_faults({"torch": "2.13.0", "trl": "1.1"}, installed, ["peft"]) == [
        "peft is missing", "trl 1.0, tested with 1.1",
    ]  # fmt: skip


def test_keys_are_named_but_not_shown(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    live = ("judge.provider=openai", "judge.model=m", "judge.base_url=https://judge.example.com/v1")
    run = with_settings(opened, *live)
    lacking = LOOKS["keys"](run)
    assert lacking.failed and "SCORER_API_KEY is not set" in lacking.advice
    assert "uses the Prefect secret rc1-scorer-api-key" in lacking.advice
    assert "the doctor only reads the environment" in lacking.advice
    monkeypatch.setenv("SCORER_API_KEY", "sk-very-secret")
    there = LOOKS["keys"](run)
    assert not there.failed and "set: SCORER_API_KEY" in there.found
    assert "very-secret" not in f"{lacking}{there}"
    monkeypatch.setenv("RC1_TICKET_KEY", "/nowhere/ticket.pem")
    assert LOOKS["keys"](opened).failed


@pytest.fixture
def answering() -> Iterator[str]:
    """The address of a server that answers everything with 404."""

    class NotFound(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            """No log."""

    with HTTPServer(("127.0.0.1", 0), NotFound) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_any_answer_counts_as_reachable_and_silence_does_not(answering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoints.unreachable(answering) == ""
    assert endpoints.unreachable(f"http://127.0.0.1:{free_port()}") == "Connection refused"
    monkeypatch.setattr(endpoints, "_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts the connection without an answer
        assert endpoints.unreachable(f"http://127.0.0.1:{silent.getsockname()[1]}") != ""


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


def test_vllm_server_with_wrong_start_options_fails_with_the_right_ones(opened: Run) -> None:
    base = opened.workspace.path("base")
    with served(base) as double:
        run = sampled_by(opened, double.base_url)
        assert not LOOKS["vllm"](run).failed
        needed = run.config.training.max_tokens + run.config.training.limits.tokens
        double.context = needed - 1
        found = LOOKS["vllm"](run)
        assert f"start it with --max-model-len {needed} or more" in found.advice
        double.context = needed
        assert not LOOKS["vllm"](run).failed
        double.change = lambda path, body, answer: (404, {"detail": "Not Found"}) if "lora" in path else answer
        assert "--enable-lora, --max-lora-rank 4 or more, and VLLM_ALLOW_RUNTIME_LORA" in LOOKS["vllm"](run).advice
        double.change = lambda path, body, answer: answer
        found = LOOKS["vllm"](with_settings(run, "training.warm_start.steps=1"))
        assert "that is base_model, but training starts from checkpoints/sft" in found.advice


def test_unreachable_or_silent_vllm_server_fails(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = sampled_by(opened, f"http://127.0.0.1:{free_port()}/v1")
    assert failed_looks(gone) == {"vllm", "ticket"}  # the ticket is for other settings
    found = LOOKS["vllm"](gone)
    assert "was asked once" in found.found and "step" not in found.found and "start it" in found.advice
    monkeypatch.setattr(endpoints, "_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = LOOKS["vllm"](sampled_by(opened, f"http://127.0.0.1:{silent.getsockname()[1]}/v1"))
    assert found.failed and "no complete answer within 0.2 s (the doctor's)" in found.found


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


def test_adapter_on_a_tied_head_is_counted_and_an_unknown_layer_is_an_error(opened: Run) -> None:
    base, name = read_base(opened), "training.adapter.targets"
    assert "lm_head.weight" not in base.shapes
    alone, both = (with_settings(opened, f"{name}=[q_proj{more}]").config for more in ("", ", lm_head"))
    vocabulary, width = base.shapes["model.embed_tokens.weight"]
    more = trained_parameters(both, base) - trained_parameters(alone, base)
    assert more == alone.training.adapter.rank * (vocabulary + width)
    with pytest.raises(ConfigError, match=r"^training\.adapter\.targets: head "):
        trained_parameters(with_settings(opened, f"{name}=[q_proj, head]").config, base)


def test_early_stop_metric_is_reported_and_an_unknown_one_is_rejected(opened: Run) -> None:
    ends = "training.early_stop.metric"
    assert "ends early" not in LOOKS["engine"](opened).found
    assert "ends early by env/success" in LOOKS["engine"](with_settings(opened, f"{ends}=env/success")).found
    with pytest.raises(ConfigError, match=rf"{ends.split('.')[1]}\.metric: .*'env/sucess'"):
        with_settings(opened, f"{ends}=env/sucess")


def test_checkpoint_has_the_computed_size(opened: Run, tmp_path: Path) -> None:
    """Compared with a checkpoint of the engine's own state after one optimizer step."""
    base = read_base(opened)
    engine = TorchPPO()
    engine.setup(Setup.of_run(opened.config, str(base.folder), 1))
    for group in engine.optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    engine.optimizer.step()
    trained = sum(p.numel() for group in engine.optimizer.param_groups for p in group["params"])
    assert trained_parameters(opened.config, base) == trained
    assert base.parameters == sum(p.numel() for p in engine.policy.causal.parameters()) - trained + sum(
        p.numel() for p in engine.policy.value_head.parameters()
    )
    state = engine.state_dict()
    flat = {name: state.pop(name) for name in ("adapter", "value_head")}
    written = save_checkpoint(CheckpointState(flat, {"step": 1}, state), tmp_path / "c", tmp_path / "ledger")
    size = sum(path.stat().st_size for path in written.iterdir())
    assert 0 <= checkpoint_bytes(opened.config, base) - size < 192 * 2**10


@pytest.mark.parametrize(
    ("steps", "every", "segment", "count"), [(48, 12, 12, 4), (10, 4, 3, 6), (10, 4, 20, 3), (1, 5, 5, 1)]
)
def test_checkpoints_are_counted(opened: Run, steps: int, every: int, segment: int, count: int) -> None:
    settings = (f"steps={steps}", f"training.checkpoints.every_steps={every}", f"training.segment_steps={segment}")
    config = with_settings(opened, *settings).config
    saved_at = {step for step in range(1, steps + 1) if step % every == 0 or step % segment == 0 or step == steps}
    assert count_saved(config) == most_at_once(config) == count == len(saved_at)


@pytest.mark.parametrize(("last", "every", "count"), [(3, "null", 7), (3, "24", 7), (3, "16", 9), (30, "null", 12)])
def test_most_checkpoints_at_once_under_retention_are_counted(opened: Run, last: int, every: str, count: int) -> None:
    """The newest, those that the evaluation needs, every n-th, and the one being written."""
    keep = f"keep_last: {last}, keep_every: {every}"
    rule = f"training.checkpoints={{every_steps: 4, every_minutes: null, {keep}}}"
    config = with_settings(opened, "steps=48", "training.segment_steps=12", "training.collapse.patience=2", rule).config
    simulated, most, keeps = set[int](), 0, keep_rule_of(config)
    assert keeps is not None
    for step in range(4, 49, 4):
        simulated.add(step)
        most = max(most, len(simulated))
        simulated = keeps.kept(simulated)
    assert most_at_once(config) == count and count - 1 <= most <= count


def test_published_configuration_keeps_few_checkpoints(opened: Run) -> None:
    config = open_run(profile="prod", workspace=opened.workspace.root).config
    assert (count_saved(config), most_at_once(config)) == (500, 17)


class Incomplete:
    """An engine whose `train_step` takes no batch, and without `load_state_dict`."""

    def setup(self, setup: Any) -> None: ...

    def train_step(self) -> None: ...

    def state_dict(self) -> None: ...


def test_engine_methods_that_do_not_fit_the_trainer_are_named() -> None:
    names = ("setup", "train_step", "state_dict", "load_state_dict")
    faults = misfits(Incomplete, Engine, names)
    assert len(faults) == 2
    assert faults[0].startswith("train_step(self)") and faults[1].startswith("has no load_state_dict(self, state")
    assert misfits(TorchPPO, Engine, (*names, "eval_step")) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('def play(scene):\n    """Well."""', ""),
        ('def play(scene, times=2):\n    """Well."""', ""),
        ('def play(*scenes):\n    """Well."""', ""),
        ("def play(scene):\n    pass", "docstring"),
        ('def plays(scene):\n    """No."""', "no function play"),
        ('def play():\n    """No."""', "does not take one scene"),
        ('def play(scene, *, more):\n    """No."""', "does not take one scene"),
        ("def play(scene:", "is not valid Python"),
        ("raise SystemExit  # read, not run", "no function play"),
    ],
)
def test_custom_policy_is_parsed_and_not_run(tmp_path: Path, source: str, fault: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(source)
    found = policy_fault(path)
    assert (found == "") == (fault == "") and fault in found
    assert "cannot be read" in policy_fault(tmp_path / "missing.py")
