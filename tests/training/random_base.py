"""A run on random weights in the shape of the published base: for tests and benchmarks, without download or ticket."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3Config

from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.tiny_world import pool_rows, write_pool

EMBEDDED = PROJECT_ROOT / "models/embedded"
ALONE = (
    "training.warm_start.steps=0", "training.reward.judge=0", "gates.not_applicable={verified_reward: random weights}",
    "training.ppo.value_warm_up=0", "training.languages=[en]", "training.eval_shadow.every_steps=null",
    "training.early_stop.metric=null",
)  # fmt: skip
"""Every step learns, and no judge is asked."""


def published_shape(narrower: int = 1, layers: int = 36) -> Qwen3Config:
    """Qwen3-4B-Thinking-2507's shape with its full vocabulary, `layers` layers and widths divided by `narrower`."""
    return Qwen3Config(
        hidden_size=2560 // narrower,
        intermediate_size=9728 // narrower,
        num_hidden_layers=layers,
        num_attention_heads=32 // narrower,
        num_key_value_heads=8 // narrower,
        head_dim=128,
        vocab_size=151_936,
        tie_word_embeddings=True,
        max_position_embeddings=262_144,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 5_000_000.0},
    )


def random_run(
    workspace: Path, *overrides: str, profile: str = "prod", narrower: int = 1, layers: int = 36, rows: int = 30
) -> Run:
    """A run of a profile on a base of random weights; base and rows are written if they are missing.

    The tokenizer is the bundled base's: others would need a download.
    """
    base = workspace / "base"
    if not base.exists():
        tokenizer = AutoTokenizer.from_pretrained(EMBEDDED)
        config = published_shape(narrower, layers)
        ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
        config.update(ends)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(base)
        tokenizer.save_pretrained(base)
        write_pool(workspace, pool_rows(rows))
    # fp32 gives the same numbers on every CPU, also on those that multiply bf16.
    precision = () if torch.cuda.is_available() else ("training.precision=fp32",)
    settings = (*ALONE, f"base_model={base}", *precision, *overrides)
    return open_run(profile=profile, workspace=workspace, overrides=settings)
