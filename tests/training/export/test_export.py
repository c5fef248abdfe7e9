"""Exporting a policy: what peft and transformers load equals the policy, or nothing is written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.device import Precision
from rc1_lib.training.export import checkpoint_export as export_module
from rc1_lib.training.export.checkpoint_export import ExportMismatchError, export_checkpoint, write_final_model
from rc1_lib.training.export.parity import parity
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.workspace.file_hashes import sha256_file
from tests.training.ppo.toys import episode
from tests.training.tiny_world import ENGINES, tiny_run

Trained = tuple[Run, Path]
IDS_1T = torch.arange(40, 70)[None]


@pytest.fixture(scope="module")
def kept(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace after two steps. Never write into it: use `after_two_steps`."""
    root = shutil.copytree(tiny_workspace, tmp_path_factory.mktemp("trained") / "workspace")
    prepared = prepare(tiny_run(root, *ENGINES["torch_ppo"]))
    advance(prepared, prepared.run.config.seeds[0], 2, lambda _: None)
    return root


@pytest.fixture
def after_two_steps(kept: Path, tmp_path: Path) -> Trained:
    """The run in a copy of that workspace, and its checkpoint."""
    root = shutil.copytree(kept, tmp_path / "trained", symlinks=True)
    return tiny_run(root, *ENGINES["torch_ppo"]), root / "checkpoints/rc1/step_00002"


@torch.no_grad()
def logits(model: torch.nn.Module) -> Tensor:
    return model.eval()(input_ids=IDS_1T).logits


def test_exported_adapter_and_merged_model_equal_the_policy(after_two_steps: Trained) -> None:
    run, checkpoint = after_two_steps
    target = run.workspace.path("out/policy")
    done = export_checkpoint(run, checkpoint, target, 4)
    base = run.workspace.path("base")
    adapted = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), str(target / "adapter"))
    merged = AutoModelForCausalLM.from_pretrained(target / "merged")
    torch.testing.assert_close(logits(adapted), logits(merged), atol=1e-4, rtol=0)
    assert (logits(merged) - logits(AutoModelForCausalLM.from_pretrained(base))).abs().max() > 0.1
    assert AutoTokenizer.from_pretrained(target / "merged").chat_template
    assert all(one.passed and one.tokens >= one.episodes == 4 for one in done.found.values())
    manifest = json.loads((target / "export.json").read_text())
    assert manifest["base"]["name"] == "base" and manifest["base"]["sha256"] == prepare(run).reference.sha256
    assert manifest["checkpoint"]["step"] == 2 and manifest["engine"] == "torch_ppo"
    assert manifest["chat"] == {
        "tools_described_by": None,
        "system_text": None,
        "system_in_user_message": False,
        "tool_replies_in_user_message": False,
        "date": None,
        "enable_thinking": None,
        "end_of_turn": "<|im_end|>",
    }
    assert {one: sha256_file(target / one) for one in manifest["files"]} == manifest["files"]
    assert str(run.workspace.root) not in (target / "adapter/adapter_config.json").read_text()


def test_export_without_the_end_of_turn_id_is_rejected(
    after_two_steps: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, checkpoint = after_two_steps
    merged_model = export_module.merged_model

    def without_end(*arguments: object) -> torch.nn.Module:
        model = merged_model(*arguments)  # type: ignore[arg-type]
        model.config.eos_token_id = model.generation_config.eos_token_id = 0
        return model

    monkeypatch.setattr(export_module, "merged_model", without_end)
    target = run.workspace.path("out/policy")
    with pytest.raises(RC1Error, match=r" 0, .*token 2; .*generation_config\.json.*\[0, 2\]"):
        export_checkpoint(run, checkpoint, target, 2)
    assert not target.exists()


def test_merged_model_that_differs_from_the_policy_is_not_written(
    after_two_steps: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged_model = export_module.merged_model

    def one_weight_off(*arguments: object) -> torch.nn.Module:
        model = merged_model(*arguments)  # type: ignore[arg-type]
        model.get_submodule("model.layers.1.mlp.down_proj").weight.data[0, 0] += 1.0
        return model

    monkeypatch.setattr(export_module, "merged_model", one_weight_off)
    run, checkpoint = after_two_steps
    target = run.workspace.path("out/policy")
    with pytest.raises(ExportMismatchError) as error:
        export_checkpoint(run, checkpoint, target, 4)
    assert error.value.found["adapter"].passed and not error.value.found["merged"].passed
    assert os.listdir(target.parent) == []


def test_final_model_is_the_newest_export_and_replaces_no_other_folder(after_two_steps: Trained) -> None:
    run, checkpoint = after_two_steps
    write_final_model(run, checkpoint)
    target = run.workspace.path("final_model")
    assert not target.with_name(".final_model.new").exists()
    listed = run.workspace.checksum_path("final_model").read_text().splitlines()
    assert f"{sha256_file(target / 'merged/model.safetensors')}  final_model/merged/model.safetensors" in listed
    first, manifest = target.stat().st_ino, json.loads((target / "export.json").read_text())
    run.workspace.checksum_path("final_model").unlink()  # as after a kill
    write_final_model(run, checkpoint)
    assert target.stat().st_ino == first and run.workspace.checksum_path("final_model").exists()
    manifest["checkpoint"]["sha256"] = "0" * 64
    (target / "export.json").write_text(json.dumps(manifest))
    write_final_model(run, checkpoint)
    assert json.loads((target / "export.json").read_text())["checkpoint"]["sha256"] == fingerprint(checkpoint)
    weights = target / "merged/model.safetensors"
    weights.write_bytes(b"altered")
    write_final_model(run, checkpoint)
    assert sha256_file(weights) == json.loads((target / "export.json").read_text())["files"]["merged/model.safetensors"]
    (target / "export.json").unlink()
    with pytest.raises(RC1Error, match=r"final_model: is not an export .*move it away"):
        write_final_model(run, checkpoint)


def test_export_rejects_an_existing_folder_and_another_runs_checkpoint(after_two_steps: Trained) -> None:
    run, checkpoint = after_two_steps
    target = run.workspace.path("out")
    target.mkdir()
    with pytest.raises(RC1Error, match=r"/out: .*already.*another folder"):
        export_checkpoint(run, checkpoint, target, 4)
    pool = run.workspace.path(run.config.seed_pool)
    content = pool.read_text()
    pool.write_text(content.replace("coins", "pence", 30))
    with pytest.raises(CheckpointError, match=r"step_00002: .*data/rollouts/rc1_seed\.balanced\.jsonl"):
        export_checkpoint(run, checkpoint, run.workspace.path("other"), 4)
    (run.workspace.path("base") / "generation_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"step_00002: .* base; "):
        export_checkpoint(run, checkpoint, run.workspace.path("other"), 4)


def test_parity_detects_a_changed_logit_a_changed_token_and_nan() -> None:
    played = [episode("row", [(False, [1, 2]), (True, [3, 0])], [-0.1, -0.1])]
    logits_TV = torch.tensor([[0.0, 0, 0, 9], [0, 0, 0, 9], [9, 0, 0, 0]])

    def reads(table: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda ids_1T: table[None, : ids_1T.shape[1]]

    def compared(table: Tensor) -> tuple[bool, int]:
        found = parity(reads(logits_TV), reads(table), played, Precision.FP32)
        return found.passed, found.other_tokens

    assert compared(logits_TV) == (True, 0)
    assert compared(logits_TV + torch.tensor([0, 0.01, 0, 0])) == (False, 0)
    assert compared(logits_TV.roll(1, dims=1)) == (False, 2)
    assert compared(logits_TV * torch.nan)[0] is False
    assert not parity(reads(logits_TV), reads(logits_TV), [], Precision.FP32).passed, "no episode was compared"
