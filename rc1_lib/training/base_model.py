"""Loading a base model and its tokenizer, from a folder or the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from rc1_lib.artifacts import sha256_json, sha256_tree
from rc1_lib.errors import ConfigError
from rc1_lib.training.device import Precision, to_device
from rc1_lib.training.train_config import ModelSection

_PATTERNS = ("*.safetensors", "*.json", "*.jinja")


def load_tokenizer(model: ModelSection) -> PreTrainedTokenizerBase:
    """The base's tokenizer; where it has no padding token, the end-of-text token takes its place.

    Raises:
        ConfigError: when it cannot be had, or has no end-of-text token.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(model.base, trust_remote_code=model.trust_remote_code)
    except (OSError, ValueError) as error:
        raise ConfigError(_no_base(model.base, error)) from None
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"model.base: the tokenizer of '{model.base}' has no end-of-text token; give another model")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_base(model: ModelSection, device: torch.device, precision: Precision) -> PreTrainedModel:
    """The base on `device`, without a cache.

    Its weights are kept in `precision` on an accelerator, where they are frozen below an adapter; else in fp32, which
    an optimizer needs, and which a CPU computes fastest.

    Raises:
        ConfigError: when it cannot be had, or flash attention is asked for where there is none.
    """
    if model.use_flash_attention_2 and device.type != "cuda":
        raise ConfigError(f"model.use_flash_attention_2: there is none on {device.type}; write false")
    half = device.type != "cpu" and model.lora.enable
    extra: dict[str, Any] = {}
    if model.quantization == "nf4":
        extra = {"quantization_config": _nf4(precision), "device_map": {"": device}}
    try:
        base = AutoModelForCausalLM.from_pretrained(
            model.base,
            trust_remote_code=model.trust_remote_code,
            attn_implementation="flash_attention_2" if model.use_flash_attention_2 else "sdpa",
            dtype=precision.dtype if half else torch.float32,
            **extra,
        )
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        raise ConfigError(_no_base(model.base, error)) from None
    base.config.use_cache = False
    placed: PreTrainedModel = base if model.quantization else to_device(base, device)
    return placed


def base_fingerprint(model: ModelSection) -> str:
    """What the adapter is an adapter of: one SHA-256 over a folder's files, or the commit on the hub.

    Raises:
        ConfigError: when the base cannot be had.
    """
    folder = Path(model.base)
    if folder.is_dir():
        return sha256_json({pattern: sha256_tree(folder, pattern) for pattern in _PATTERNS})
    try:
        config = AutoConfig.from_pretrained(model.base, trust_remote_code=model.trust_remote_code)
    except (OSError, ValueError) as error:
        raise ConfigError(_no_base(model.base, error)) from None
    return f"{model.base}@{config._commit_hash}"


def _nf4(precision: Precision) -> BitsAndBytesConfig:
    """4 bits as in QLoRA (Dettmers et al. 2023): NormalFloat, the scales quantised too."""
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=precision.dtype,
    )


def _no_base(base: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return (
        f"model.base: '{base}' cannot be loaded ({reason[:200]}); give a folder with --set model.base=DIR, or go online"
    )
