"""The engine of `docs/how-to/own-engine.md`: its loss equals the shipped engine's, and its state is complete."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch

from rc1_lib.training.api import Engine
from rc1_lib.training.engines.pure_pt_sft import PurePtSFT
from rc1_lib.training.train_config import load_train_config
from rc1_lib.training.train_local import setup_of
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.pages import example, run
from tests.training.engines.test_row_engines import BATCH
from tests.training.tiny import write_base

SETTINGS = (
    "run.device_pref=[cpu]",
    "run.mixed_precision=fp32",
    "data.batch_size=2",
    "engine.lr=0.01",
    "engine.name=pure_pt_sft",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


def engine(base: Path, kind: type[Engine] | None = None, adapter: str = "false") -> Engine:
    made = (kind or run(example("own-engine.md", '"""Supervised training'))["PlainSFT"])()
    overrides = [f"model.base={base}", f"model.lora.enable={adapter}", *SETTINGS]
    config = load_train_config(PROJECT_ROOT / "configs/train_local.yaml", overrides)
    made.setup(setup_of(config, config.model))
    return made


def test_example_engine_has_the_loss_of_the_shipped_one(base: Path) -> None:
    ours, theirs = engine(base).eval_step(BATCH), engine(base, PurePtSFT).eval_step(BATCH)
    assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    assert ours["tokens"] == theirs["tokens"] == 5 + 2 + 3


def test_restored_example_engine_continues_bit_for_bit(base: Path) -> None:
    first, second = engine(base), engine(base)
    losses = [first.train_step(BATCH)["loss"] for _ in range(3)]
    assert losses[2] < losses[0]
    second.load_state_dict(deepcopy(first.state_dict()))  # a checkpoint's tensors are copies
    assert first.train_step(BATCH) == second.train_step(BATCH)
    ours, theirs = first.state_dict()["model"], second.state_dict()["model"]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
