"""A small pool of real rows, a tiny Qwen3 that can hold a dialogue, and a run with both."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import torch
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from models.build_embedded.tokenizer import train_tokenizer
from rc1_lib.config.file import load_config
from rc1_lib.config.run_config import RunConfig
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import load_pack
from rc1_lib.records import BUCKETS
from rc1_lib.run import Run, open_run
from rc1_lib.sources.embedded import EMBEDDED_TASKS as TASKS
from rc1_lib.sources.embedded import generate
from rc1_lib.text.tokens import text_length
from rc1_lib.training.chat_format import ChatFormat, turn_text
from rc1_lib.workspace.artifacts import PROJECT_ROOT, atomic_write
from tests.training.tiny import shape

VOCABULARY = 2560

OVERRIDES = (
    "base_model=base", "training.threads=1", "training.shards=1", "training.max_tokens=420",
    "training.warm_start.steps=0", "steps=4", "batch_size=8", "rollout_len=24", "lr=0.01",
    "training.rollout.rows=8", "training.update.minibatches=2",
    "training.ppo.value_warm_up=1", "training.update.micro_tokens=2048", "training.held_out.prompts=12",
    "training.held_out.judged=0", "training.reward.judge=0",
    "training.checkpoints.every_steps=2", "training.segment_steps=2", "training.adapter.rank=4",
    "training.update.kl_stop=100.0", "training.update.group_size=4",
    "training.collapse={patience: 9, wasted_patience: 9}",
    "training.learnability.at_start=0",
)  # fmt: skip
"""A run of seconds. It differs from the shipped configuration only in what decides the duration."""


ENGINES: dict[str, tuple[str, ...]] = {
    "torch_ppo": ("training.ppo.value_warm_up=0",),
    "torch_grpo": ("training.engine=torch_grpo", "training.strategy=groups"),
    "trl_dpo": ("training.engine=trl_dpo", "training.strategy=groups"),
}
"""Engines that learn from episodes -> overrides with which they learn from the first step on."""
SUPERVISED: dict[str, tuple[str, ...]] = {
    "pure_pt_sft": ("training.engine=pure_pt_sft", "training.strategy=demonstrations"),
}
"""Engines that learn from demonstrations -> overrides."""
RUNS = ENGINES | SUPERVISED
"""All engines that a run can name -> overrides."""


def pool_rows(count: int, *, chinese: float = 0.0) -> list[dict[str, Any]]:
    """`count` questions of every task as rows of the pool, in all three buckets; each question is used twice."""
    config = shipped()
    pack = load_pack(PROJECT_ROOT / config.pool.templates_dir)
    rng = random.Random(5)
    rows = []
    for task in TASKS:
        for index, question in enumerate(generate(task, count, 99, chinese)):
            for use in (0, 1):
                planned = PlannedRow(f"pool-{task}-{index:03d}-{use}", "pool", question, use)
                row = write_row(planned, rng.choice(BUCKETS), config.pool, pack)
                if row is not None:
                    rows.append(row)
    return rows


def shipped() -> RunConfig:
    """The configuration of the profile local."""
    return load_config(PROJECT_ROOT / "configs/local.yaml", [])


def learned_tokenizer(rows: Sequence[dict[str, Any]], vocabulary: int = VOCABULARY) -> PreTrainedTokenizerBase:
    """A tokenizer of the bundled base's kind, trained on these rows."""
    texts = (
        "\n" + (turn_text(message) if message["role"] == "assistant" else message["content"])
        for row in rows
        for message in row["messages"]
    )
    return train_tokenizer(texts, vocabulary)


def random_base(tokenizer: PreTrainedTokenizerBase) -> Qwen3ForCausalLM:
    """A tiny Qwen3 with random weights of a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
        return Qwen3ForCausalLM(shape(len(tokenizer), 32, max_position_embeddings=1024, **ids)).eval()


def teach(model: Qwen3ForCausalLM, form: ChatFormat, rows: Sequence[dict[str, Any]], steps: int) -> None:
    """Train it until it calls tools and ends turns, some of them well formed, so that rewards of episodes differ."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rng = random.Random(3)
    model.train()
    for _ in range(steps):
        dialogues = [form.dialogue_ids(row["messages"]) for row in rng.sample(list(rows), 6)]
        width = max(len(ids) for ids, _ in dialogues)
        ids_BT = torch.tensor([ids + [form.pad_id] * (width - len(ids)) for ids, _ in dialogues])
        labels_BT = torch.tensor(
            [
                [token if mine else -100 for token, mine in zip(ids, own, strict=True)] + [-100] * (width - len(ids))
                for ids, own in dialogues
            ]
        )
        optimizer.zero_grad()
        model(input_ids=ids_BT, labels=labels_BT).loss.backward()
        optimizer.step()
    model.eval()


def write_base(folder: Path, rows: Sequence[dict[str, Any]], steps: int = 60) -> Path:
    """Write a model that was trained for some steps, and its tokenizer, as `from_pretrained` reads them."""
    tokenizer = learned_tokenizer(rows)
    model, form = random_base(tokenizer), ChatFormat(tokenizer)
    teach(model, form, [row for row in rows if len(form.dialogue_ids(row["messages"])[0]) <= 300], steps)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def write_pool(workspace: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as the balanced pool, and its metrics file; the bucket is the recipe's."""
    config = shipped()
    with atomic_write(workspace / config.seed_pool) as stream:
        stream.writelines(orjson.dumps(row) + b"\n" for row in rows)
    with atomic_write(workspace / config.difficulty.metrics_path) as stream:
        for row in rows:
            words = sum(text_length(message["content"]) for message in row["messages"])
            stream.write(orjson.dumps({"id": row["id"], "bucket": row["recipe"], "len_tokens": words}) + b"\n")


def write_workspace(workspace: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write what a tiny run reads: these rows as the pool, and a base that was trained on them."""
    torch.set_num_threads(1)
    write_pool(workspace, rows)
    write_base(workspace / "base", rows)


def tiny_run(workspace: Path, *overrides: str) -> Run:
    """The run of a workspace that holds a pool and a folder `base`."""
    return open_run(profile="local", workspace=workspace, overrides=(*OVERRIDES, *overrides))
