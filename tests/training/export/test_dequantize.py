"""The initial policy of a QLoRA training as plain weights: the dequantized numbers, or no export."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

import rc1_lib.extras.vllm.server as server_module
from rc1_lib.cli import main
from rc1_lib.errors import RC1Error
from rc1_lib.extras.vllm.server import VLLMError
from rc1_lib.run import Run
from rc1_lib.training.base_model import load_base
from rc1_lib.training.device import Precision
from rc1_lib.training.export import dequantize as dequantize_module
from rc1_lib.training.export.dequantize import RECORD, export_dequantized
from rc1_lib.training.layer_weights import in_4_bits
from rc1_lib.training.models import fingerprint_of, model_section
from rc1_lib.workspace.file_hashes import sha256_file
from tests.training.test_episode_engines import engine_of, played
from tests.training.tiny_world import OVERRIDES
from tests.training.vllm_double import served

Tiny = Callable[..., Run]
QLORA = "finetune.method=qlora"
PUBLISHED = ("training.parity.mean=0.02", "training.parity.far_share=0.05")
"""The limits of profile prod."""


def test_exported_layers_equal_their_dequantized_weights_bit_for_bit(tiny: Tiny) -> None:
    from bitsandbytes.functional import dequantize_4bit

    run = tiny(QLORA, *PUBLISHED)
    target, base = run.workspace.path("start"), run.workspace.path("base")
    done = export_dequantized(run, target, Precision.BF16, 4)
    assert done.folder == target and done.gap.passed and done.gap.tokens >= done.gap.dialogues == 4
    assert 0.0 < done.gap.mean <= 0.02 and done.gap.far_share <= 0.05
    written = AutoModelForCausalLM.from_pretrained(target)
    assert {one.dtype for one in written.parameters()} == {torch.bfloat16}
    packed = load_base(model_section(run.config, str(base)), torch.device("cpu"), Precision.FP32)
    published = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).state_dict()
    quantised = {f"{name}.weight": layer for name, layer in packed.named_modules() if in_4_bits(layer)}
    assert len(quantised) == 14  # seven projections of two layers
    for name, value in written.state_dict().items():
        weight = quantised[name].weight if name in quantised else None
        numbers = (
            published[name] if weight is None else dequantize_4bit(weight.data, cast(nn.Module, weight).quant_state)
        )
        assert torch.equal(value, numbers.to(torch.bfloat16)), name
        assert weight is None or not torch.equal(value, published[name].to(torch.bfloat16)), name


def test_folder_has_a_record_and_no_quantization_config(tiny: Tiny) -> None:
    run = tiny(QLORA, *PUBLISHED)
    target = run.workspace.path("start")
    export_dequantized(run, target, Precision.BF16, 2)
    assert "quantization_config" not in json.loads((target / "config.json").read_text())
    assert AutoTokenizer.from_pretrained(target).chat_template
    record = json.loads((target / RECORD).read_text())
    base = str(run.workspace.path("base"))
    assert record["base"] == {"name": "base", "sha256": fingerprint_of(run.config, base), "base_model": "base"}
    assert record["quantization"] == {"type": "nf4", "double": True, "compute": "float32"}
    assert record["precision"] == "bf16" and record["gap"]["pass"] is True
    assert {path.name for path in target.iterdir()} == {RECORD, *record["files"]}
    assert {name: sha256_file(target / name) for name in record["files"]} == record["files"]


@pytest.mark.long
def test_server_of_the_export_passes_parity_and_one_of_the_published_weights_fails(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "FIRST_PAUSE_S", 0.0)
    target = tiny().workspace.path("start")
    export_dequantized(tiny(QLORA), target, Precision.FP32, 2)

    def largest_gap(base: Path) -> float:
        with served(base) as double:
            run = tiny(
                QLORA, "training.ppo.value_warm_up=0", "training.rollout.sampler=vllm",
                f"training.vllm.base_url={double.base_url}", f"training.vllm.adapters={tmp_path / 'adapters'}",
            )  # fmt: skip
            engine = engine_of(run)
            try:
                return max(engine.train_step(played(engine, run, step))["policy/sampling_gap"] for step in range(2))
            finally:
                engine.close()

    assert largest_gap(target) < 1e-5
    with pytest.raises(VLLMError, match=r"serves '.*base', .*training\.parity\.mean\)"):
        largest_gap(tiny().workspace.path("base"))


def test_weights_that_differ_from_the_policy_are_not_kept(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    merged_model = dequantize_module.merged_model

    def off(*arguments: object) -> nn.Module:
        model = merged_model(*arguments)  # type: ignore[arg-type]
        model.get_submodule("model.layers.1.mlp.down_proj").weight.data[0] += 1.0
        return model

    monkeypatch.setattr(dequantize_module, "merged_model", off)
    run = tiny(QLORA, *PUBLISHED)
    done = export_dequantized(run, run.workspace.path("out/start"), Precision.BF16, 2)
    assert done.folder is None and not done.gap.passed
    assert os.listdir(run.workspace.path("out")) == []


def test_export_without_qlora_base_or_warm_start_or_over_a_folder_is_rejected(tiny: Tiny) -> None:
    def rejection(run: Run) -> str:
        with pytest.raises(RC1Error) as error:
            export_dequantized(run, run.workspace.path("start"), Precision.BF16, 2)
        assert not (run.workspace.path("start") / "config.json").exists()
        return str(error.value)

    assert "qlora" in rejection(tiny())
    assert "nowhere" in rejection(tiny(QLORA, "base_model=models/nowhere"))
    assert "rc1 train" in rejection(tiny(QLORA, "training.warm_start.steps=1"))
    tiny().workspace.path("start").mkdir()
    assert "already exists" in rejection(tiny(QLORA))


def rc1_dequantize(run: Run, *flags: str) -> int:
    """Run the command and return its exit code."""
    overrides = [part for override in (*OVERRIDES, QLORA) for part in ("--set", override)]
    with pytest.raises(SystemExit) as ended:
        main(["ckpt", "dequantize", "--workspace", str(run.workspace.root), "--prompts", "2", *overrides, *flags])
    return int(ended.value.code or 0)


def test_command_exports_once_within_the_limits(tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    run = tiny()
    assert rc1_dequantize(run, "--precision", "fp32") == 0
    output = "".join(capsys.readouterr().out.split())
    assert "models/export/start-fp32" in output and "4bits" in output
    assert rc1_dequantize(run, "--precision", "fp32") == 2
    assert "already exists" in " ".join(capsys.readouterr().err.split())
    assert rc1_dequantize(run, "--precision", "int4") == 2
    assert "'int4'" in " ".join(capsys.readouterr().err.split())
    assert rc1_dequantize(run, "--set", "training.parity.mean=1e-9") == 1
    assert "--precision fp32" in " ".join(capsys.readouterr().out.split())
    assert os.listdir(run.workspace.path("models/export")) == ["start-fp32"]
