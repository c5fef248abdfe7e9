"""A policy that cannot fit into memory is rejected with numbers before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rc1_lib.errors import ConfigError
from rc1_lib.run import open_run
from rc1_lib.training import usable
from rc1_lib.training.api import Setup, make_engine
from rc1_lib.training.train_config import load_train_config
from rc1_lib.training.train_local import setup_of
from rc1_lib.training.usable import check_memory
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.random_base import published_shape
from tests.training.tiny import write_base

CPU = torch.device("cpu")


def rows_of(base: Path, engine: str, *overrides: str) -> Setup:
    settings = [f"engine.name={engine}", f"model.base={base}", "run.device_pref=[cpu]", *overrides]
    config = load_train_config(PROJECT_ROOT / "configs/train_local.yaml", settings)
    return setup_of(config, config.model)


def test_published_base_is_rejected_if_its_weights_exceed_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_run(profile="prod", workspace=Path("unused"), overrides=["training.precision=fp32"])
    setup, shape = Setup.of_run(opened.config, "base", 1), published_shape()
    monkeypatch.setattr(usable, "free_bytes", lambda _: 3 * 2**30)
    with pytest.raises(
        ConfigError,
        match=r" 3\.\d\d GiB .* 3\.00 GiB .* 3\.\d\d, .*finetune\.method",
    ):
        check_memory(setup, shape, CPU, 1)
    monkeypatch.setattr(usable, "free_bytes", lambda _: 4 * 2**30)
    parts = check_memory(setup, shape, CPU, 1)
    with pytest.raises(ConfigError, match=r"2 processes, 4\.00 GiB"):
        check_memory(setup, shape, CPU, 2)
    monkeypatch.setattr(usable, "free_bytes", lambda _: None)
    assert check_memory(setup, shape, CPU, 99) == parts, "unknown free memory rejects nothing"


def test_supervised_engine_is_rejected_before_its_weights_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write_base(tmp_path / "base")
    setup = rows_of(base, "pure_pt_sft")
    engine = make_engine("pure_pt_sft")
    (base / "model.safetensors").unlink()  # it must not be read
    monkeypatch.setattr(usable, "free_bytes", lambda _: 2**10)
    with pytest.raises(ConfigError, match=r" 0\.00 GiB .*model\.quantization: nf4 .*model\.base$"):
        engine.setup(setup)
