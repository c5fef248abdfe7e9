"""Use a checkpoint's policy outside of training: its initial policy, an engine to play it, and a merged model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import GenerationConfig, PreTrainedModel

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.api import Setup, make_engine
from rc1_lib.training.base_model import load_base
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.device import Precision
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.models import base_name, fingerprint_of
from rc1_lib.training.train_config import ModelSection


def start_of(run: Run, sha256: str | None, whose: str) -> str:
    """Return the initial policy that an adapter belongs to, for transformers.

    Args:
        sha256: expected fingerprint of the initial policy.
        whose: name of what was trained, for the message.

    Raises:
        CheckpointError: if that policy is missing or differs.
    """
    warm = bool(run.config.training.warm_start.steps)
    base = str(REFERENCE.path(run)) if warm else base_name(run.config, run.workspace)
    if warm and not Path(base).is_dir():
        raise CheckpointError(f"{base}: initial policy not found; train again with rc1 train")
    if fingerprint_of(run.config, base) != sha256:
        raise CheckpointError(
            f"{whose}: trained from another version of {run.workspace.name(Path(base))}; give the flags with which it "
            "was trained, or train again"
        )
    return base


def engine_of(run: Run, base: str, state: CheckpointState) -> PolicyEngine:
    """Set up the run's engine with the checkpoint's policy. The caller must close it.

    Raises:
        ConfigError: if the engine is not a PolicyEngine.
    """
    engine = untrained_engine(run, base, int(state.values["seed"]))
    engine.load_adapter(state.tensors["adapter"])
    return engine


def untrained_engine(run: Run, base: str, seed: int) -> PolicyEngine:
    """Set up the run's engine; its policy is `base` itself. The caller must close it.

    Raises:
        ConfigError: if the engine is not a PolicyEngine.
    """
    name = run.config.training.engine
    engine = make_engine(name)
    if not isinstance(engine, PolicyEngine):
        raise ConfigError(
            f"training.engine: found '{name}', whose policy cannot be exported; it must be a PolicyEngine"
        )
    engine.setup(Setup.of_run(run.config, base, seed))
    return engine


@torch.no_grad()
def merged_model(causal: nn.Module, section: ModelSection, precision: Precision) -> PreTrainedModel:
    """Merge a policy's adapter into its base, on the CPU.

    A base that was trained in 4 bits becomes the dequantised weights, not the published ones, because the adapter was
    trained on those.

    Of the base's generation config only the special tokens are kept. The policy was trained and evaluated without the
    base's penalties and truncations, which a server would apply by itself.

    Args:
        causal: the policy's model, with or without an adapter; not changed.
    """
    plain = load_base(section.model_copy(update={"quantization": None}), torch.device("cpu"), Precision.FP32)
    for name, layer in causal.named_modules():
        if isinstance(layer, LoraLayer) or _is_bare_4bit(name, layer):
            cast(nn.Linear, plain.get_submodule(name)).weight.copy_(merged_weights(layer))
    model = cast(PreTrainedModel, plain.to(precision.dtype))  # type: ignore[arg-type]
    if (base := model.generation_config) is not None:
        tokens = {name: getattr(base, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
        model.generation_config = GenerationConfig(**tokens)  # type: ignore[no-untyped-call]
    return model


def _in_4_bits(layer: Any) -> bool:
    """Whether a layer's weights are 4-bit weights of bitsandbytes."""
    return getattr(getattr(layer, "weight", None), "quant_state", None) is not None


def _is_bare_4bit(name: str, layer: Any) -> bool:
    """Whether a layer with this name in its model has 4-bit weights and no adapter."""
    return _in_4_bits(layer) and not name.endswith(".base_layer")


def _base_layer_of(layer: Any) -> nn.Linear:
    """Return the layer inside an adapter, or the layer itself."""
    return cast(nn.Linear, layer.get_base_layer() if isinstance(layer, LoraLayer) else layer)


def merged_weights(layer: Any) -> Tensor:
    """Compute a layer's weights in fp32, including its adapter if enabled."""
    numbers = _dequantized(_base_layer_of(layer))
    return numbers + _adapter_delta(layer) if isinstance(layer, LoraLayer) and not layer.disable_adapters else numbers


def _dequantized(layer: Any) -> Tensor:
    """Compute the weights of a layer without an adapter, in fp32."""
    if not _in_4_bits(layer):
        return cast(Tensor, layer.weight).detach().float()
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()


def _adapter_delta(layer: LoraLayer) -> Tensor:
    """Compute the product of an adapter's matrices, scaled, in fp32."""
    (name,) = layer.active_adapters
    down, up = (cast(nn.Linear, part[name]).weight.detach().float() for part in (layer.lora_A, layer.lora_B))
    added: Tensor = (up @ down) * layer.scaling[name]
    return added
