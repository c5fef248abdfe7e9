"""Intact bases are loaded as stored; damaged ones are rejected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import load_base, load_tokenizer
from rc1_lib.training.device import Precision
from rc1_lib.training.train_config import LoraSection, ModelSection
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.tiny import write_base

UP = "model.layers.1.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base. Never write into it: use `base`."""
    return write_base(tmp_path_factory.mktemp("whole"), hidden=64)


@pytest.fixture
def base(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "base"))


def section(base: Path, quantization: Any = None) -> ModelSection:
    lora = LoraSection(enable=True, r=4, alpha=8, dropout=0.0)
    return ModelSection(base=str(base), quantization=quantization, lora=lora)


def load(base: Path, quantization: Any = None) -> Any:
    return load_base(section(base, quantization), torch.device("cpu"), Precision.FP32)


def rewrite(base: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(base / "model.safetensors")
    change(weights)
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})


def configure(base: Path, **values: Any) -> None:
    path = base / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_pickled_weights_are_rejected(base: Path) -> None:
    torch.save(load_file(base / "model.safetensors"), base / "pytorch_model.bin")
    (base / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"model\.base: .*pytorch_model\.bin.*\*\.safetensors"):
        load(base)


@pytest.mark.parametrize("folder", [PROJECT_ROOT / "models/embedded", None], ids=["bundled", "tiny"])
def test_base_loads_with_tied_weights_stored_once(folder: Path | None, whole: Path) -> None:
    folder = folder or whole
    stored = load_file(folder / "model.safetensors")
    assert "lm_head.weight" not in stored
    model = load(folder)
    assert all(torch.equal(model.state_dict()[name], value.float()) for name, value in stored.items())
    assert model.lm_head.weight is model.model.embed_tokens.weight


@pytest.mark.parametrize("quantization", [None, "nf4"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop(UP), rf"\black .*config\.json \({UP}\)"),
        (lambda weights: weights.update(odd=torch.ones(2)), r"does not have .*config\.json \(odd\)"),
        (lambda weights: weights.update({UP: torch.ones(3, 64)}), rf"shapes .*config\.json \({UP}\)"),
    ],
    ids=["missing", "unexpected", "layer of another size"],
)
def test_weights_that_do_not_match_the_configuration_are_rejected(
    base: Path, change: Callable[[dict[str, torch.Tensor]], object], message: str, quantization: Any
) -> None:
    rewrite(base, change)
    with pytest.raises(ConfigError, match=rf"model\.base: .*{message}"):
        load(base, quantization)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_size": 32}, r"shapes .*config\.json \(.* and \d+ more\)"),
        ({"hidden_act": "none"}, r"\(KeyError: 'none'"),
        ({"model_type": "none"}, r"\(ValueError"),
    ],
)
def test_configuration_of_another_model_is_rejected(base: Path, values: dict[str, Any], message: str) -> None:
    configure(base, **values)
    with pytest.raises(ConfigError, match=rf"model\.base: .*{message}"):
        load(base)


def test_unknown_adapter_target_is_rejected_even_among_valid_ones(base: Path) -> None:
    def adapted(*targets: str) -> ModelSection:
        lora = LoraSection(enable=True, r=4, alpha=8, dropout=0.0, target_modules=targets)
        return section(base).model_copy(update={"lora": lora})

    load_base(adapted("q_proj", "self_attn.v_proj"), torch.device("cpu"), Precision.FP32)
    with pytest.raises(ConfigError, match=r"\(c_attn\) .*down_proj, gate_proj, .*v_proj: .*training\.adapter\.targets"):
        load_base(adapted("q_proj", "c_attn"), torch.device("cpu"), Precision.FP32)
    for other in ("self_attn", "q_norm", "embed_tokens"):
        with pytest.raises(ConfigError, match=rf"\({other}\) .*linear .* of '.*down_proj, "):
            load_base(adapted("q_proj", other), torch.device("cpu"), Precision.FP32)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("tokenizer.json", lambda text: text[:1000]),
        ("tokenizer.json", lambda text: json.dumps(json.loads(text) | {"model": {"type": "none"}})),
        ("tokenizer_config.json", lambda text: "[]"),
        ("config.json", lambda text: "[]"),
    ],
    ids=["truncated", "another model", "settings", "configuration"],
)
def test_damaged_tokenizer_is_rejected(base: Path, name: str, damage: Callable[[str], str]) -> None:
    (base / name).write_text(damage((base / name).read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"model\.base: '.*\(.*--set model\.base=DIR"):
        load_tokenizer(section(base))
