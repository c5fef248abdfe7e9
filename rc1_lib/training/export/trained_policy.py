"""A checkpoint's policy outside of a training: what it was started from, the engine that plays it, one plain model."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import GenerationConfig, PreTrainedModel

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.api import Setup
from rc1_lib.training.base_model import load_base
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.device import Precision
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.layer_weights import stands_alone, whole_weights
from rc1_lib.training.models import base_name, fingerprint_of
from rc1_lib.training.registry import make_engine
from rc1_lib.training.train_config import ModelSection


def start_of(run: Run, sha256: str | None, whose: str) -> str:
    """The policy that an adapter is an adapter of, as transformers takes it.

    Args:
        run: whose base.
        sha256: of the policy that was started from.
        whose: names what was trained, for the refusal.

    Raises:
        CheckpointError: when that policy is not there, or another one.
    """
    warm = bool(run.config.training.warm_start.steps)
    base = str(REFERENCE.path(run)) if warm else base_name(run.config, run.workspace)
    if warm and not Path(base).is_dir():
        raise CheckpointError(f"{base}: the initial policy is missing; train again: rc1 train")
    if fingerprint_of(run.config, base) != sha256:
        raise CheckpointError(
            f"{whose}: was trained from another version of {run.workspace.name(Path(base))}; give the flags with "
            f"which it was trained, or train again"
        )
    return base


def engine_of(run: Run, base: str, state: CheckpointState) -> PolicyEngine:
    """The run's engine with the checkpoint's policy; close it.

    Raises:
        ConfigError: when the engine is one whose policy cannot be handed over.
    """
    name = run.config.training.engine
    engine = make_engine(name)
    if not isinstance(engine, PolicyEngine):
        raise ConfigError(
            f"training.engine: found '{name}', whose policy cannot be handed over; it has to be a PolicyEngine"
        )
    engine.setup(Setup.of_run(run.config, base, int(state.values["seed"])))
    engine.load_adapter(state.tensors["adapter"])
    return engine


@torch.no_grad()
def merged_model(causal: nn.Module, section: ModelSection, precision: Precision) -> PreTrainedModel:
    """A policy without an adapter, on the CPU.

    A base that was trained on in 4 bits becomes the numbers that its layers compute with, not the published weights:
    the adapter was learned next to those.

    Of how the base generates it keeps its tokens alone: it was trained and measured without the base's penalties and
    cut-offs, which a server would apply by itself.

    Args:
        causal: the policy's model, with an adapter or without; not changed.
        section: of its base.
        precision: of the weights that are made.
    """
    plain = load_base(section.model_copy(update={"quantization": None}), torch.device("cpu"), Precision.FP32)
    for name, layer in causal.named_modules():
        if isinstance(layer, LoraLayer) or stands_alone(name, layer):
            cast(nn.Linear, plain.get_submodule(name)).weight.copy_(whole_weights(layer))
    model = cast(PreTrainedModel, plain.to(precision.dtype))  # type: ignore[arg-type]
    if (base := model.generation_config) is not None:
        tokens = {name: getattr(base, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
        model.generation_config = GenerationConfig(**tokens)  # type: ignore[no-untyped-call]
    return model
