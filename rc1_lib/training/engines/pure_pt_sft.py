"""Supervised fine-tuning in plain PyTorch: the engine `pure_pt_sft`, which needs no TRL.

Loss, conventions and state are those of `trl_sft`: with or without an adapter, with QLoRA, in any precision, on the
same batches. States that predict no learned token are never turned into logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from peft import get_peft_model, prepare_model_for_kbit_training
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import AdamW, Optimizer
from transformers import PreTrainedModel

from rc1_lib.training.api import Engine, GradientHook
from rc1_lib.training.base_model import load_base
from rc1_lib.training.device import Precision, get_device, get_precision, to_device
from rc1_lib.training.finite_step import check_finite_gradient, check_finite_loss
from rc1_lib.training.labelled_rows import IGNORED, micro_batches
from rc1_lib.training.lora import lora_config
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.trained_weights import TrainedWeights
from rc1_lib.training.usable import check_rows_memory


class PurePtSFT(Engine[SupervisedSetup]):
    """The engine `pure_pt_sft`.

    Attributes:
        model: what is trained, its adapter included.
        optimizer: AdamW over what is trained.
        gradient_hooks: called between backward and the optimizer's step.
        ignores: keys of the section `engine` that mean nothing here.
    """

    takes = SupervisedSetup
    ignores = ("target_kl", "clip_coef")
    model: nn.Module
    optimizer: Optimizer
    gradient_hooks: list[GradientHook]

    def setup(self, setup: SupervisedSetup) -> None:
        """Load the base, adapt it, and build the optimizer.

        Raises:
            ConfigError: when the base cannot be had, the machine lacks what is asked for, or it does not fit into
                memory.
        """
        self.device = get_device(setup.devices)
        self.precision = get_precision(self.device, setup.precision)
        self._rows = setup.micro_batch
        check_rows_memory(setup, self.device)
        self._causal = load_base(setup.model, self.device, self.precision)
        self.model = _adapted(self._causal, setup)
        self._weights = TrainedWeights(self.model, adapted=setup.model.lora.enable)
        self.optimizer = AdamW(self._weights.parameters, lr=setup.engine.lr, weight_decay=0.0)
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision is Precision.FP16)
        self.gradient_hooks = []

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One step over `batch` (`input_ids`, `attention_mask`, `labels`, all [B, T]), in micro-batches.

        The loss is the mean over all learned tokens of the step, however they fall into micro-batches.

        Returns:
            `loss` (nats a token), `lr`, `mean_token_accuracy`, and what the hooks measured.

        Raises:
            DivergedError: when the loss is not finite, or the gradients are not and no scaler skips the step.
        """
        self.model.train()
        measured = self._mean(batch, learn=True)
        measured["lr"] = float(self.optimizer.param_groups[0]["lr"])
        self._scaler.unscale_(self.optimizer)
        for hook in self.gradient_hooks:
            measured |= hook(self._weights.parameters)
        check_finite_gradient(self._weights.parameters, self._scaler)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.optimizer.zero_grad()
        return measured

    @torch.no_grad()
    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """`loss` and `mean_token_accuracy` over the learned tokens of `batch`, and `tokens`, their number.

        Raises:
            DivergedError: when the loss is not finite.
        """
        self.model.eval()
        return {**self._mean(batch, learn=False), "tokens": float(_learned(batch["labels"]).sum())}

    def state_dict(self) -> dict[str, Any]:
        """`adapter` (or `model`), `optimizer`, and under fp16 the loss `scaler`."""
        state: dict[str, Any] = {self._weights.name: self._weights.state(), "optimizer": self.optimizer.state_dict()}
        return {**state, "scaler": self._scaler.state_dict()} if self._scaler.is_enabled() else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave.

        Raises:
            ConfigError: when the weights are those of another model or adapter.
        """
        self._weights.load(state[self._weights.name])
        self.optimizer.load_state_dict(state["optimizer"])
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(state["scaler"])

    def _mean(self, batch: Mapping[str, Any], *, learn: bool) -> dict[str, float]:
        """Means over the learned tokens; where they are to be learned, their gradients too."""
        total, loss, right = int(_learned(batch["labels"]).sum()), 0.0, 0
        for part in micro_batches(dict(batch), self._rows):
            with torch.autocast(
                self.device.type, dtype=self.precision.dtype, enabled=self.precision is not Precision.FP32
            ):
                logits_NV, labels_N = self._predicted(to_device(part, self.device))
            share = cross_entropy(logits_NV.float(), labels_N, reduction="sum") / total
            if learn:
                self._scaler.scale(share).backward()  # type: ignore[no-untyped-call]
            loss += float(share.detach())
            right += int((logits_NV.detach().argmax(dim=-1) == labels_N).sum())
        check_finite_loss(loss)
        return {"loss": loss, "mean_token_accuracy": right / total}

    def _predicted(self, part: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Logits [N, V] and labels [N] of the learned tokens."""
        causal = cast(Any, self._causal)
        states_BTD = causal.get_decoder()(
            input_ids=part["input_ids"], attention_mask=part["attention_mask"], use_cache=False
        ).last_hidden_state
        learned_BT = _learned(part["labels"])
        return causal.get_output_embeddings()(states_BTD[:, :-1][learned_BT]), part["labels"][:, 1:][learned_BT]


def _adapted(base: PreTrainedModel, setup: SupervisedSetup) -> nn.Module:
    """The base with a fresh adapter, where one is asked for; a base in 4 bits as QLoRA prepares it."""
    model, checkpointing, untyped = setup.model, {"use_reentrant": False}, cast(Any, base)
    if model.quantization is not None:
        cast(Any, prepare_model_for_kbit_training)(base, model.gradient_checkpointing, checkpointing)
    elif model.gradient_checkpointing:
        untyped.gradient_checkpointing_enable(checkpointing)
        untyped.enable_input_require_grads()
    if not model.lora.enable:
        return base
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(setup.seed)
        return cast(nn.Module, get_peft_model(base, lora_config(model.lora)))


def _learned(labels_BT: Tensor) -> Tensor:
    """Which tokens are predicted, [B, T - 1]; the first of a row never is."""
    return labels_BT[:, 1:] != IGNORED
