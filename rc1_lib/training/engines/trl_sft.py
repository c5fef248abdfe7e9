"""Supervised fine-tuning through TRL's `SFTTrainer`, driven one step of the optimizer at a time.

TRL's trainer brings the loss (log-probabilities in chunks, without the full logits), the adapter, mixed precision,
gradient checkpointing and QLoRA's conventions. The loop around it is RC1's, so that checkpoints, callbacks and exact
resuming are those of every other engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, cast

import torch
from datasets import Dataset
from torch import Tensor
from torch.optim import Optimizer
from transformers import PrinterCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine, GradientHook
from rc1_lib.training.base_model import load_base, load_tokenizer
from rc1_lib.training.device import Precision, get_device, get_precision, to_device
from rc1_lib.training.finite_step import check_finite_gradient, check_finite_loss
from rc1_lib.training.labelled_rows import IGNORED, micro_batches
from rc1_lib.training.lora import lora_config
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.trained_weights import TrainedWeights
from rc1_lib.training.trl_trainers import NO_ROWS, Logged
from rc1_lib.training.usable import check_rows_memory


class TrlSFT(Engine[SupervisedSetup]):
    """The engine `trl_sft`.

    Attributes:
        optimizer: AdamW over what is trained.
        gradient_hooks: called between backward and the optimizer's step.
        ignores: keys of the section `engine` that mean nothing here.
    """

    takes = SupervisedSetup
    ignores = ("target_kl", "clip_coef")
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
        self._trainer, self._logged = _trainer(setup, self.device, self.precision), Logged()
        self._trainer.add_callback(self._logged)
        self._inner = cast(Any, self._trainer.model)  # inside whatever accelerate wraps around it
        self._weights = TrainedWeights(self._inner, adapted=setup.model.lora.enable)
        if setup.model.gradient_checkpointing:
            # `Trainer.train` would do it; TRL has made the adapter's inputs require gradients for it already.
            self._inner.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
        self.model, self.optimizer = self._trainer.accelerator.prepare(self._inner, self._trainer.create_optimizer())
        self._trainer.optimizer = self.optimizer
        self.gradient_hooks = []

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One step over `batch` (`input_ids`, `attention_mask`, `labels`, all [B, T]), in micro-batches.

        The loss is the mean over all learned tokens of the step, however they fall into micro-batches.

        Returns:
            `loss` (nats a token), `lr`, TRL's `entropy` and `mean_token_accuracy`, and what the hooks measured.

        Raises:
            DivergedError: when the loss is not finite, or the gradients are not and no scaler skips the step.
        """
        total = _learned_tokens(batch)
        parts = micro_batches(batch, self._rows)
        self._trainer.current_gradient_accumulation_steps = len(parts)
        loss = 0.0
        for part in parts:
            moved = to_device(part, self.device)
            loss += float(self._trainer.training_step(self.model, moved, num_items_in_batch=total))  # type: ignore[no-untyped-call]
        check_finite_loss(loss)
        # Under fp16 the gradients are scaled up until here.
        self._trainer.accelerator.unscale_gradients(self.optimizer)
        measured = {"loss": loss, "lr": float(self.optimizer.param_groups[0]["lr"]), **self._means()}
        for hook in self.gradient_hooks:
            measured |= hook(self._weights.parameters)
        check_finite_gradient(self._weights.parameters, self._trainer.accelerator.scaler)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return measured

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """`loss` (mean over the learned tokens of `batch`), TRL's metrics, and `tokens`, their number.

        Raises:
            DivergedError: when the loss is not finite.
        """
        self.model.eval()
        total = _learned_tokens(batch)
        loss = 0.0
        for part in micro_batches(batch, self._rows):
            mean, _, _ = self._trainer.prediction_step(self.model, to_device(part, self.device), True)
            assert mean is not None
            loss += float(mean) * float(_learned_tokens(part) / total)
        check_finite_loss(loss)
        return {"loss": loss, "tokens": float(total), **self._means("eval_")}

    def _means(self, prefix: str = "") -> dict[str, float]:
        """What TRL has measured since the last call: means of micro-batches."""
        self._trainer.log({})
        (logged,) = self._logged.taken()
        return {name: logged[prefix + name] for name in ("entropy", "mean_token_accuracy")}

    def state_dict(self) -> dict[str, Any]:
        """`adapter` (or `model`), `optimizer`, and under fp16 the loss `scaler`."""
        scaler = self._trainer.accelerator.scaler
        state: dict[str, Any] = {self._weights.name: self._weights.state(), "optimizer": self.optimizer.state_dict()}
        return state if scaler is None else {**state, "scaler": scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave.

        Raises:
            ConfigError: when the weights are those of another model or adapter.
        """
        self._weights.load(state[self._weights.name])
        self.optimizer.load_state_dict(state["optimizer"])
        if self._trainer.accelerator.scaler is not None:
            self._trainer.accelerator.scaler.load_state_dict(state["scaler"])


def _trainer(setup: SupervisedSetup, device: torch.device, precision: Precision) -> SFTTrainer:
    arguments = SFTConfig(
        output_dir=tempfile.gettempdir(),  # asked for, but nothing is saved through TRL
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
        bf16=precision is Precision.BF16,
        fp16=precision is Precision.FP16,
        seed=setup.seed,
        learning_rate=setup.engine.lr,
        optim="adamw_torch",
        activation_checkpointing=setup.model.gradient_checkpointing,
        dataset_kwargs={"skip_prepare_dataset": True},
        trust_remote_code=setup.model.trust_remote_code,
    )
    if arguments.device.type != device.type:
        raise ConfigError(
            f"run.device_pref: {device.type} was chosen, but TRL takes {arguments.device.type} on this machine; "
            f"put {arguments.device.type} first"
        )
    made = SFTTrainer(
        model=load_base(setup.model, device, precision),
        args=arguments,
        train_dataset=Dataset.from_list(NO_ROWS),
        processing_class=load_tokenizer(setup.model),
        peft_config=lora_config(setup.model.lora) if setup.model.lora.enable else None,
    )
    # Its loss is divided by the tokens of the whole step already.
    made.loss_is_scaled_for_ga = True  # type: ignore[assignment]  # typed as the default, None
    made.remove_callback(PrinterCallback)
    return made


def _learned_tokens(batch: Mapping[str, Tensor]) -> Tensor:
    """How many tokens of `batch` are predicted; the first of a row never is."""
    return (batch["labels"][:, 1:] != IGNORED).sum()
