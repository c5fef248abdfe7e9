"""TRL's `PPOTrainer` on a job: run by the interpreter of an environment that has TRL 1.12.

python theirs.py JOB.json GENERATED_AT_ONCE LEARNED_AT_ONCE
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from datasets import Dataset
from job import Job, Meter, reward
from peft import LoraConfig
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, TrainerCallback
from trl.experimental.ppo import PPOConfig, PPOTrainer


class LastToken(nn.Module):
    """A reward model of no size at all, in the form that `PPOTrainer` asks for."""

    base_model_prefix = "tokens"

    def __init__(self) -> None:
        super().__init__()
        self.tokens = _Tokens()

    def score(self, hidden: torch.Tensor) -> torch.Tensor:
        """The rewards, as they are."""
        return hidden


class _Tokens(nn.Module):
    def forward(self, input_ids: torch.Tensor, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(hidden_states=[reward(input_ids)[..., None]])


class Marks(TrainerCallback):
    """Marks the end of every step."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """A step has ended."""
        self._meter.mark()


def settings(job: Job, generated: int, learned: int, folder: str) -> PPOConfig:
    """The job in TRL's terms; what costs time and is no part of it is switched off.

    Args:
        job: what is to be done.
        generated: episodes of one call of `generate` and of one reading.
        learned: episodes of one pass with gradients.
        folder: to write to.
    """
    return PPOConfig(
        output_dir=folder,
        total_episodes=job.episodes * (1 + job.steps),
        per_device_train_batch_size=learned,
        gradient_accumulation_steps=job.episodes // learned,
        num_mini_batches=job.minibatches,
        num_ppo_epochs=job.epochs,
        local_rollout_forward_batch_size=generated,
        response_length=job.response,
        stop_token="eos" if job.ends else None,
        temperature=job.temperature,
        learning_rate=job.lr,
        cliprange=job.clip,
        kl_coef=job.kl_coef,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        num_sample_generations=0,
        save_strategy="no",
        report_to="none",
        logging_steps=10**6,
        disable_tqdm=True,
    )


def main() -> None:
    """Train, and print what it took."""
    job, generated, learned = Job.read(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(job.processor_cores)
    tokenizer = AutoTokenizer.from_pretrained(job.base, padding_side="left")
    policy = AutoModelForCausalLM.from_pretrained(job.base, dtype=torch.float32)
    value = AutoModelForSequenceClassification.from_pretrained(job.base, num_labels=1, dtype=torch.float32)
    # Its head alone learns, as ours does: the cheapest value model that PPOTrainer takes at this size.
    value.model.requires_grad_(False)
    meter = Meter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = PPOTrainer(
            args=settings(job, generated, learned, folder),
            processing_class=tokenizer,
            model=policy,
            ref_model=None,
            reward_model=LastToken(),
            value_model=value,
            train_dataset=Dataset.from_dict({"input_ids": json.loads(Path(job.prompts).read_bytes())}),
            callbacks=[Marks(meter)],
            peft_config=LoraConfig(r=job.rank, lora_alpha=job.alpha, target_modules=job.targets),
        )
        trainer.train()
    passes = -(-job.episodes // job.minibatches // learned) * job.minibatches * job.epochs
    print(meter.report(updates=passes // trainer.accelerator.gradient_accumulation_steps))


if __name__ == "__main__":
    main()
