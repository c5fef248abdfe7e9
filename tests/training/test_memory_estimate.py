"""What is estimated of memory before anything is allocated: each engine's own way of reading its head, and its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import trl.kernels.chunked_logprob as tiles
import trl.trainer.utils as theirs
from transformers import PretrainedConfig

from rc1_lib.errors import ConfigError
from rc1_lib.run import open_run
from rc1_lib.training import memory_estimate
from rc1_lib.training.memory_estimate import (
    TILE_TOKENS,
    TILE_WORDS,
    MemoryEstimate,
    estimate_memory,
    estimate_rows_memory,
)
from rc1_lib.training.registry import make_engine
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.train_config import load_train_config
from rc1_lib.training.train_local import setup_of
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.random_base import published_shape
from tests.training.tiny import write_base

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(scope="module")
def shape() -> PretrainedConfig:
    """The published base's at an eighth of its width."""
    return published_shape(8, 2)


def rows_of(engine: str, *overrides: str) -> SupervisedSetup:
    """Rows of 100 tokens, 40 of them learned."""
    settings = [f"engine.name={engine}", "data.batch_size=4", *overrides]
    config = load_train_config(PROJECT_ROOT / "configs/train_local.yaml", settings)
    return replace(setup_of(config, config.model), longest=100, most_learned=40)


def of_episodes(engine: str, shape: PretrainedConfig, *overrides: str) -> MemoryEstimate:
    strategy = "ppo" if engine == "torch_ppo" else "groups"
    settings = (f"training.engine={engine}", f"training.strategy={strategy}", *overrides)
    config = open_run(profile="prod", workspace=Path("unused"), overrides=settings).config
    return estimate_memory(config, shape, CPU, 300)


def test_trls_losses_read_the_head_in_tiles_of_the_size_that_is_counted() -> None:
    assert (tiles.TOKEN_CHUNK_SIZE, theirs._CHUNKED_LOGPROB_CHUNK_SIZE) == (TILE_TOKENS, TILE_WORDS)


def test_a_loss_of_trls_holds_logits_of_every_token_that_it_reads(shape: PretrainedConfig) -> None:
    few, many = (f"training.trl_grpo.micro_tokens={tokens}" for tokens in (600, 1200))
    counted = [of_episodes("trl_grpo", shape, tokens).learning["logits"] for tokens in (few, many)]
    assert counted[1] == 2 * counted[0] == 10 * 1200 * TILE_WORDS * 4
    own = [of_episodes("torch_grpo", shape, tokens.replace("trl_", "")).learning["logits"] for tokens in (few, many)]
    assert own == [5 * 256 * 151_936 * 4] * 2


def test_dpo_learns_from_pairs_alone_and_reads_all_takes(shape: PretrainedConfig) -> None:
    pair, takes = (
        of_episodes(name, shape, "batch_size=32", f"training.{name}.minibatches=4", "kl_coef=0.1").learning
        for name in ("trl_dpo", "trl_grpo")
    )
    # Four prompts of eight takes: a minibatch is one pair, or eight takes.
    assert 4 * pair["logits"] == takes["logits"]
    read = 8192 * (2 * 320 + 3 * 1216) * 4
    assert read < pair["activations"] < read + 2**22, "and the largest matrix, unpacked"
    few = ("batch_size=8", "rollout_len=4", "training.limits.turns=1", "training.dpo.minibatches=1", "kl_coef=0.1")
    own = of_episodes("torch_dpo", shape, *few, "training.dpo.group_size=8").learning["logits"]
    assert own == 2 * (8 * 4) * 151_936 * 4 > 5 * (2 * 4) * 151_936 * 4, "all takes are read, two are learned from"


@pytest.mark.parametrize("adapted", [True, False])
def test_what_is_trained_of_rows_has_a_gradient_and_two_moments(shape: PretrainedConfig, adapted: bool) -> None:
    standing = estimate_rows_memory(rows_of("pure_pt_sft", f"model.lora.enable={adapted}"), shape, CPU).standing
    trained = standing["adapter"] or standing["weights"]
    assert (standing["gradients"], standing["optimizer"]) == (trained, 2 * trained)
    assert (standing["adapter"] > 0) is adapted


def test_logits_of_rows_are_those_of_what_is_learned_or_read(shape: PretrainedConfig) -> None:
    plain, trls = (estimate_rows_memory(rows_of(name), shape, CPU).learning for name in ("pure_pt_sft", "trl_sft"))
    assert plain["logits"] == 4 * (4 * 40) * 151_936 * 4
    assert trls["logits"] == 10 * (4 * 100) * TILE_WORDS * 4
    assert plain["activations"] == trls["activations"]
    assert estimate_rows_memory(rows_of("trl_sft"), shape, GPU).learning["logits"] == 400 * TILE_WORDS * 2


def test_four_bits_and_states_computed_again_need_less(shape: PretrainedConfig) -> None:
    dear = estimate_rows_memory(rows_of("trl_sft", "model.gradient_checkpointing=false"), shape, CPU)
    thrifty = estimate_rows_memory(rows_of("trl_sft", "model.quantization=nf4"), shape, CPU)
    assert thrifty.standing["weights"] < dear.standing["weights"]
    assert thrifty.learning["activations"] < dear.learning["activations"]


@pytest.mark.parametrize("name", ["pure_pt_sft", "trl_sft"])
def test_rows_that_fit_no_machine_are_refused_before_anything_is_loaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write_base(tmp_path / "base")
    setup = rows_of(name, f"model.base={base}", "run.device_pref=[cpu]")
    engine = make_engine(name, SupervisedSetup)
    (base / "model.safetensors").unlink()  # nothing of it is read
    monkeypatch.setattr(memory_estimate, "free_bytes", lambda _: 2**20)
    with pytest.raises(ConfigError, match=r"does not fit .* 0\.00 GiB are free\. .* Lower data\.batch_size or data\."):
        engine.setup(setup)
