"""The adapter of a configuration as peft takes it."""

from __future__ import annotations

from peft import LoraConfig

from rc1_lib.training.train_config import LoraSection


def lora_config(lora: LoraSection) -> LoraConfig:
    """LoRA on the layers that the section names."""
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.target_modules),
        task_type="CAUSAL_LM",
    )
