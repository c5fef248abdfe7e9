"""Load a base model and its tokenizer from a folder or the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import GENERATION_CONFIG_NAME

from rc1_lib.config.hub_name import name_and_commit
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_tokens import check_tokens
from rc1_lib.training.device import Precision, to_device
from rc1_lib.training.resource_errors import shortage
from rc1_lib.training.train_config import ModelSection
from rc1_lib.workspace.artifacts import sha256_folder

_LOADING_FAULTS = {
    "missing_keys": "lack tensors that the model needs",
    "unexpected_keys": "contain tensors that the model does not have",
    "mismatched_keys": "contain tensors whose shapes differ from the model's",
}
"""Transformers only logs these faults and goes on with random or ignored weights."""

_REPACK_FLAG = "support_avx512bf16_for_cpu"
"""Flag of a bitsandbytes 4-bit layer: repack the weights for AVX-512 BF16."""


def load_tokenizer(model: ModelSection) -> PreTrainedTokenizerBase:
    """Load the base's tokenizer. If it has no padding token, the end-of-text token is used for padding.

    Raises:
        ConfigError: if it cannot be loaded, has no end-of-text token, or a token beyond the embeddings.
    """
    if (folder := Path(model.base)).is_dir():
        check_tokens(folder)
    tokenizer: PreTrainedTokenizerBase = _load(
        model.base,
        lambda: AutoTokenizer.from_pretrained(**_location(model.base), trust_remote_code=False),
    )
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"model.base: the tokenizer of '{model.base}' has no end-of-text token; use another model")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def model_without_weights(config: PretrainedConfig) -> PreTrainedModel:
    """Create a causal language model on the meta device: tensors have shapes but no memory.

    Raises:
        ConfigError: if transformers cannot build a model from the configuration.
    """
    try:
        with torch.device("meta"), torch.random.fork_rng(devices=[]):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    except (
        ValueError, TypeError, RuntimeError, ArithmeticError, LookupError, AttributeError, AssertionError,
    ) as error:  # fmt: skip
        raise ConfigError(
            f"base_model: the config.json of '{config.name_or_path}' describes no valid model ({_one_line(error)}); "
            f"build or download the base again, or use another one"
        ) from error
    return model


def config_of(folder: Path) -> PretrainedConfig:
    """Read the configuration of a base in a folder.

    Raises:
        ConfigError: if its config.json is invalid.
    """
    return _config(str(folder.resolve()))


def load_base(model: ModelSection, device: torch.device, precision: Precision) -> PreTrainedModel:
    """Load the base on `device`, with its KV cache switched off.

    Weights below an adapter are frozen and kept in `precision`. Without an adapter they are trained and kept in fp32,
    which the optimizer needs.

    Raises:
        ConfigError: if it cannot be loaded, its weights do not match its config.json, it lacks a layer that the adapter
            names, or flash attention is requested on a device without it.
    """
    if model.use_flash_attention_2 and device.type != "cuda":
        raise ConfigError(f"model.use_flash_attention_2: not available on {device.type}; set it to false")
    half = precision is not Precision.FP32 and model.lora.enable
    _check_safetensors(model.base)
    extra: dict[str, Any] = {}
    if model.quantization == "nf4":
        extra = {"quantization_config": _nf4(precision), "device_map": {"": device}}
    base, found = _load(
        model.base,
        lambda: AutoModelForCausalLM.from_pretrained(
            **_location(model.base),
            trust_remote_code=False,
            attn_implementation="flash_attention_2" if model.use_flash_attention_2 else "sdpa",
            dtype=precision.dtype if half else torch.float32,
            output_loading_info=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # else the error would not name the tensors; they are rejected below
            **extra,
        ),
    )
    found["mismatched_keys"] = [*found["mismatched_keys"], *_misshaped_4bit_weights(base)]
    _check_weights_fit(model.base, found)
    if model.lora.enable:
        check_adapter_targets(model.lora.target_modules, model.base, base)
    base.config.use_cache = False
    disable_repacking(base)
    placed: PreTrainedModel = base if model.quantization else to_device(base, device)
    return placed


def disable_repacking(base: nn.Module) -> None:
    """Stop bitsandbytes from repacking 4-bit weights on CPUs with AVX-512 BF16.

    It would repack them in place before the first sampled token. The scales lose bits, and layers with fewer than 64
    inputs fail. Training, and any other CPU, would compute with different weights.
    """
    for layer in base.modules():
        if hasattr(layer, _REPACK_FLAG):
            setattr(layer, _REPACK_FLAG, False)


def enable_gradient_checkpointing(base: PreTrainedModel) -> None:
    """Switch on gradient checkpointing: activations inside every layer are recomputed for the backward pass.

    A frozen base needs no more of peft's `prepare_model_for_kbit_training` than this and the freezing, which the
    adapter does. Norms and embeddings are not cast to fp32: Qwen3's norms compute in fp32 anyway, and the KV cache
    would be twice as large while sampling.
    """
    base.gradient_checkpointing_enable({"use_reentrant": False})  # type: ignore[no-untyped-call]


def check_no_attention_dropout(
    shape: PretrainedConfig, key: str = "training.gradient_checkpointing", remedy: str = "false here"
) -> None:
    """Reject a base that applies attention dropout in training mode.

    Args:
        shape: the base's own configuration.
        key: the configuration key that needs training mode.
        remedy: what else the user can do.

    Raises:
        ConfigError: naming the dropout and the remedy.
    """
    dropout = getattr(shape.get_text_config(), "attention_dropout", 0.0)
    if dropout:
        raise ConfigError(
            f"{key}: the base has dropout in its attention (attention_dropout {dropout:g} in its config.json), but "
            f"sampling and update must compute the same; write 0.0 there, or {remedy}"
        )


def base_fingerprint(model: ModelSection) -> str:
    """Identify the model that an adapter belongs to: SHA-256 of all files of a folder, or name and commit on the hub.

    Raises:
        ConfigError: if the base cannot be loaded.
        RC1Error: if its folder contains a link to another folder.
    """
    folder = Path(model.base)
    if folder.is_dir():
        return sha256_folder(folder)
    name, _ = name_and_commit(model.base)
    return f"{name}@{base_config(model)._commit_hash}"


def base_config(model: ModelSection) -> PretrainedConfig:
    """Read the base's own configuration without loading its weights.

    Raises:
        ConfigError: if it cannot be loaded.
    """
    return _config(model.base)


def end_ids(base: str, shape: PretrainedConfig) -> frozenset[int]:
    """Return the token ids at which a server or transformers' `generate` stops.

    They come from generation_config.json, or from config.json if there is no such file.

    Args:
        base: a folder, or a name on the hub.

    Raises:
        ConfigError: if the file is damaged.
    """
    named, folder = _location(base), Path(base)
    settings = GenerationConfig.from_model_config(shape)
    if not folder.is_dir() or (folder / GENERATION_CONFIG_NAME).is_file():
        try:
            settings = GenerationConfig.from_pretrained(
                named["pretrained_model_name_or_path"], revision=named.get("revision", "main")
            )
        except OSError as error:  # many bases on the hub have no such file
            if folder.is_dir():
                raise ConfigError(_not_loadable(base, error)) from error
    ends = settings.eos_token_id
    return frozenset([] if ends is None else [ends] if isinstance(ends, int) else ends)


def _config(base: str) -> PretrainedConfig:
    config: PretrainedConfig = _load(
        base, lambda: AutoConfig.from_pretrained(**_location(base), trust_remote_code=False)
    )
    return config


def _location(base: str) -> dict[str, str]:
    """Return the arguments of `from_pretrained`: a folder, or a hub name with its commit."""
    name, commit = name_and_commit(base)
    if Path(base).is_dir() or commit is None:
        return {"pretrained_model_name_or_path": base}
    return {"pretrained_model_name_or_path": name, "revision": commit}


def _nf4(precision: Precision) -> BitsAndBytesConfig:
    """4-bit NormalFloat with double quantisation, as in QLoRA (Dettmers et al. 2023)."""
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=precision.dtype,
    )


def check_not_a_local_path(base: str, key: str = "model.base") -> None:
    """Reject a hub name that is also a path in the current directory, because transformers would read that path.

    Raises:
        ConfigError: naming the path.
    """
    name, _ = name_and_commit(base)
    if not Path(base).is_absolute() and (Path(base).exists() or Path(name).exists()):
        raise ConfigError(
            f"{key}: '{name}' is not a folder of the workspace or the project, but it exists in the current directory, "
            f"where RC1 does not look for models; give its absolute path, or move it away"
        )


def _load(base: str, load: Callable[[], Any]) -> Any:
    """Call `load`, and turn any failure into a ConfigError, except a lack of memory or disk."""
    check_not_a_local_path(base)
    try:
        return load()
    except Exception as error:
        if shortage(error):
            raise  # not the base's fault
        # Damaged files make these libraries raise anything: KeyError, TypeError, RuntimeError, even a bare Exception.
        raise ConfigError(_not_loadable(base, error)) from error


def _check_safetensors(base: str) -> None:
    """Require safetensors in a folder, because a pickle can run code."""
    folder = Path(base)
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        found = ", ".join(sorted(path.name for path in folder.glob("*.bin"))) or "no weights"
        raise ConfigError(
            f"model.base: found {found} in '{base}', expected *.safetensors; load the model where you trust it and "
            "save it with save_pretrained"
        )


def _check_weights_fit(base: str, found: Mapping[str, Any]) -> None:
    """Reject weights that do not match the model. Transformers would only log this and use random weights."""
    for key, fault in _LOADING_FAULTS.items():
        names = sorted(name if isinstance(name, str) else name[0] for name in found[key])
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ConfigError(
                f"model.base: the weights of '{base}' {fault} according to its config.json ({shown}); build or "
                "download the base again, or use another one"
            )


def check_adapter_targets(targets: Sequence[str], base: str, model: nn.Module) -> None:
    """Reject adapter targets that are not linear layers.

    If only some targets match, peft silently skips the others, and less is trained than the user asked for. For a layer
    that it cannot adapt, peft raises an unhelpful error. An adapter of the embedding could not be used for sampling.

    Args:
        targets: names of the layers to adapt.
        base: the model's name, for the message.
        model: a model of its shape. Weights are not read.

    Raises:
        ConfigError: naming these targets, and the linear layers of the model.
    """
    layers = [(f".{name}", layer) for name, layer in model.named_modules()]
    strange, other = list[str](), list[str]()
    for target in targets:
        named = [layer for name, layer in layers if name.endswith(f".{target}")]
        if not named:
            strange.append(target)
        elif not all(isinstance(layer, nn.Linear) for layer in named):
            other.append(target)
    if strange or other:
        fault = f"({', '.join(strange)}) match no layer" if strange else f"({', '.join(other)}) match no linear layer"
        linear = {name.rpartition(".")[2] for name, layer in layers if isinstance(layer, nn.Linear)}
        raise ConfigError(
            f"the adapter's targets {fault} of '{base}'; its linear layers are {', '.join(sorted(linear))}: name some "
            f"of them under training.adapter.targets (rows of input and output: model.lora.target_modules)"
        )


def _misshaped_4bit_weights(base: PreTrainedModel) -> list[str]:
    """Find 4-bit weights whose shape differs from their layer's, which transformers does not check."""
    found = []
    for name, layer in base.named_modules():
        state: Any = getattr(getattr(layer, "weight", None), "quant_state", None)
        if state is not None and tuple(state.shape) != (layer.out_features, layer.in_features):
            found.append(f"{name}.weight")
    return found


def _not_loadable(base: str, error: Exception) -> str:
    return (
        f"model.base: '{base}' cannot be loaded ({_one_line(error)}); give a complete folder with --set model.base=DIR "
        "(in a run's configuration base_model=DIR), or go online"
    )


def _one_line(error: Exception) -> str:
    """Return an exception as one line of at most 200 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
