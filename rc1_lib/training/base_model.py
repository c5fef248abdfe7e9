"""Loading a base model and its tokenizer, from a folder or the Hugging Face hub."""

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
from rc1_lib.training.device import Precision, to_device
from rc1_lib.training.resource_errors import shortage
from rc1_lib.training.train_config import ModelSection
from rc1_lib.workspace.artifacts import sha256_folder

_MISFITS = {
    "missing_keys": "lack tensors that the model needs",
    "unexpected_keys": "hold tensors that the model has no place for",
    "mismatched_keys": "hold tensors of other sizes than the model's",
}
"""What transformers reports of a load that left something at random or out."""

_PACKS = "support_avx512bf16_for_cpu"
"""The attribute by which a 4-bit layer of bitsandbytes remembers to pack its weights again."""


def load_tokenizer(model: ModelSection) -> PreTrainedTokenizerBase:
    """The base's tokenizer; where it has no padding token, the end-of-text token takes its place.

    Raises:
        ConfigError: when it cannot be had, is damaged, or has no end-of-text token.
    """
    tokenizer: PreTrainedTokenizerBase = _loaded(
        model.base,
        lambda: AutoTokenizer.from_pretrained(**_named(model.base), trust_remote_code=model.trust_remote_code),
    )
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"model.base: the tokenizer of '{model.base}' has no end-of-text token; give another model")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def model_without_weights(config: PretrainedConfig) -> PreTrainedModel:
    """A causal model of this shape, whose tensors have sizes and no memory.

    Raises:
        ConfigError: when no model can have it.
    """
    try:
        with torch.device("meta"), torch.random.fork_rng(devices=[]):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, RuntimeError, ArithmeticError, LookupError, AttributeError) as error:
        raise ConfigError(
            f"base_model: no model can be built by the config.json of '{config.name_or_path}' ({_said(error)}); build "
            f"or download the base again, or give another one"
        ) from error
    return model


def config_of(folder: Path) -> PretrainedConfig:
    """The configuration of a base in a folder, as transformers reads it.

    Raises:
        ConfigError: when its config.json is none.
    """
    return _config(str(folder.resolve()))


def load_base(model: ModelSection, device: torch.device, precision: Precision) -> PreTrainedModel:
    """The base on `device`, without a cache.

    Its weights are kept in `precision` where they are frozen below an adapter; else in fp32, which an optimizer needs.

    Raises:
        ConfigError: when it cannot be had, its weights are not those of its config.json, it lacks a layer that the
            adapter names, or flash attention is asked for where there is none.
    """
    if model.use_flash_attention_2 and device.type != "cuda":
        raise ConfigError(f"model.use_flash_attention_2: there is none on {device.type}; write false")
    half = precision is not Precision.FP32 and model.lora.enable
    _refuse_pickles(model.base)
    extra: dict[str, Any] = {}
    if model.quantization == "nf4":
        extra = {"quantization_config": _nf4(precision), "device_map": {"": device}}
    base, found = _loaded(
        model.base,
        lambda: AutoModelForCausalLM.from_pretrained(
            **_named(model.base),
            trust_remote_code=model.trust_remote_code,
            attn_implementation="flash_attention_2" if model.use_flash_attention_2 else "sdpa",
            dtype=precision.dtype if half else torch.float32,
            output_loading_info=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # else only its log says which; they are refused below
            **extra,
        ),
    )
    found["mismatched_keys"] = [*found["mismatched_keys"], *_packed_misfits(base)]
    _refuse_misfits(model.base, found)
    if model.lora.enable:
        refuse_strange_targets(model.lora.target_modules, model.base, base)
    base.config.use_cache = False
    alike_on_every_cpu(base)
    placed: PreTrainedModel = base if model.quantization else to_device(base, device)
    return placed


def alike_on_every_cpu(base: nn.Module) -> None:
    """Have 4-bit weights stay as they are on CPUs that multiply bfloat16 in hardware (AVX-512 BF16).

    There bitsandbytes packs them again, in place, when a reply is first sampled: the scales lose bits, and a layer of
    fewer than 64 inputs is refused. Other CPUs, and training on this one, compute with the weights as they were loaded.
    """
    for layer in base.modules():
        if hasattr(layer, _PACKS):
            setattr(layer, _PACKS, False)


def recompute_states(base: PreTrainedModel) -> None:
    """Have the states within every layer computed again when gradients are asked for, instead of being kept.

    Of what peft's `prepare_model_for_kbit_training` does, this and the freezing (which an adapter does) are all that a
    frozen base needs. Casting norms and embeddings to fp32 is left out: Qwen3's norms compute in fp32 as they are, and
    keys and values of twice the size would be kept while tokens are sampled.
    """
    base.gradient_checkpointing_enable({"use_reentrant": False})  # type: ignore[no-untyped-call]


def refuse_attention_dropout(
    shape: PretrainedConfig, key: str = "training.gradient_checkpointing", remedy: str = "false here"
) -> None:
    """Refuse a base that drops out attention in training mode.

    Args:
        shape: the base's own configuration.
        key: of the configuration, what needs training mode.
        remedy: what else can be done.

    Raises:
        ConfigError: naming both.
    """
    dropout = getattr(shape.get_text_config(), "attention_dropout", 0.0)
    if dropout:
        raise ConfigError(
            f"{key}: the base drops out attention (attention_dropout {dropout:g} in its config.json), which nothing "
            f"may do between sampling and update; write 0.0 there, or {remedy}"
        )


def base_fingerprint(model: ModelSection) -> str:
    """What the adapter is an adapter of: one SHA-256 over all of a folder's files, or the commit on the hub.

    Raises:
        ConfigError: when the base cannot be had.
        RC1Error: when its folder holds a link to another folder.
    """
    folder = Path(model.base)
    if folder.is_dir():
        return sha256_folder(folder)
    name, _ = name_and_commit(model.base)
    return f"{name}@{base_config(model)._commit_hash}"


def base_config(model: ModelSection) -> PretrainedConfig:
    """The base's own configuration, without its weights.

    Raises:
        ConfigError: when it cannot be had.
    """
    return _config(model.base, trust_remote_code=model.trust_remote_code)


def end_ids(base: str, shape: PretrainedConfig) -> frozenset[int]:
    """The tokens at which whoever generates from this model stops, a server or transformers' `generate`.

    They are in generation_config.json; without that file in config.json.

    Args:
        base: a folder, or a name on the hub.
        shape: its own configuration.

    Raises:
        ConfigError: when the file is damaged.
    """
    named, folder = _named(base), Path(base)
    settings = GenerationConfig.from_model_config(shape)
    if not folder.is_dir() or (folder / GENERATION_CONFIG_NAME).is_file():
        try:
            settings = GenerationConfig.from_pretrained(
                named["pretrained_model_name_or_path"], revision=named.get("revision", "main")
            )
        except OSError as error:  # on the hub, where many bases have no such file
            if folder.is_dir():
                raise ConfigError(_no_base(base, error)) from error
    ends = settings.eos_token_id
    return frozenset([] if ends is None else [ends] if isinstance(ends, int) else ends)


def _config(base: str, *, trust_remote_code: bool = False) -> PretrainedConfig:
    config: PretrainedConfig = _loaded(
        base, lambda: AutoConfig.from_pretrained(**_named(base), trust_remote_code=trust_remote_code)
    )
    return config


def _named(base: str) -> dict[str, str]:
    """A base as `from_pretrained` takes it: a folder, or a name on the hub with the commit that it stands for."""
    name, commit = name_and_commit(base)
    if Path(base).is_dir() or commit is None:
        return {"pretrained_model_name_or_path": base}
    return {"pretrained_model_name_or_path": name, "revision": commit}


def _nf4(precision: Precision) -> BitsAndBytesConfig:
    """4 bits as in QLoRA (Dettmers et al. 2023): NormalFloat, the scales quantised too."""
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=precision.dtype,
    )


def refuse_lookalike(base: str, key: str = "model.base") -> None:
    """Refuse a name of the hub that is also a folder's in the current directory: transformers would read that one.

    Raises:
        ConfigError: saying so.
    """
    name, _ = name_and_commit(base)
    if not Path(base).is_absolute() and (Path(base).exists() or Path(name).exists()):
        raise ConfigError(
            f"{key}: '{name}' is no folder of the workspace or the project, but something of that name lies in "
            f"the current directory, where RC1 looks for no model; give its whole path, or move it away"
        )


def _loaded(base: str, load: Callable[[], Any]) -> Any:
    """What `load` reads of a base; its failure becomes a sentence."""
    refuse_lookalike(base)
    try:
        return load()
    except Exception as error:
        if shortage(error):
            raise  # says nothing against the base
        # Damaged files make these libraries raise anything: KeyError, TypeError, RuntimeError, even a bare Exception.
        raise ConfigError(_no_base(base, error)) from error


def _refuse_pickles(base: str) -> None:
    """Weights of a folder are safetensors: a pickle can run code."""
    folder = Path(base)
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        found = ", ".join(sorted(path.name for path in folder.glob("*.bin"))) or "no weights"
        raise ConfigError(
            f"model.base: found {found} in '{base}', expected *.safetensors; load it where you trust it, and save it "
            f"with save_pretrained"
        )


def _refuse_misfits(base: str, found: Mapping[str, Any]) -> None:
    """Only logged otherwise: what is missing starts at random. Tied weights are not among these."""
    for key, fault in _MISFITS.items():
        names = sorted(name if isinstance(name, str) else name[0] for name in found[key])
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ConfigError(
                f"model.base: the weights of '{base}' {fault} by its config.json ({shown}); build or download the base "
                f"again, or give another one"
            )


def refuse_strange_targets(targets: Sequence[str], base: str, model: nn.Module) -> None:
    """Refuse an adapter of what is no linear layer.

    Where another name fits, peft leaves out one that fits no layer, so that less would be trained than was asked for;
    of a layer that it cannot adapt it says so in a fault, and an adapter of the embedding cannot be sampled with here.

    Args:
        targets: names of the layers that get an adapter.
        base: the model's name, for the refusal.
        model: of its shape; no weight is read.

    Raises:
        ConfigError: naming them, and the linear layers that there are.
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
        fault = f"({', '.join(strange)}) name no layer" if strange else f"({', '.join(other)}) name no linear layer"
        linear = {name.rpartition(".")[2] for name, layer in layers if isinstance(layer, nn.Linear)}
        raise ConfigError(
            f"the adapter's targets {fault} of '{base}'; its linear layers are {', '.join(sorted(linear))}: name some "
            f"of them under training.adapter.targets (rows of input and output: model.lora.target_modules)"
        )


def _packed_misfits(base: PreTrainedModel) -> list[str]:
    """Weights in 4 bits whose size is not their layer's, which transformers does not look at."""
    found = []
    for name, layer in base.named_modules():
        state: Any = getattr(getattr(layer, "weight", None), "quant_state", None)
        if state is not None and tuple(state.shape) != (layer.out_features, layer.in_features):
            found.append(f"{name}.weight")
    return found


def _no_base(base: str, error: Exception) -> str:
    return (
        f"model.base: '{base}' cannot be loaded ({_said(error)}); give a whole folder with --set model.base=DIR (in a "
        f"run's configuration base_model=DIR), or go online"
    )


def _said(error: Exception) -> str:
    """What a library says of a fault, on one line and at no length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
