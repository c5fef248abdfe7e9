"""Base classes of the engines that learn through TRL.

Rollouts, scores, the training loop, callbacks and checkpoints are those of every engine. Each step is a short TRL
training with the run's own optimizer in the first process. The workers only play; they receive the new adapter.
"""

from __future__ import annotations

import gc
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any, ClassVar

import torch
from peft import PeftModel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, MultiplicativeLR
from transformers import PrinterCallback, Trainer, TrainerCallback, set_seed

from rc1_lib.training.api import Setup
from rc1_lib.training.device import Precision
from rc1_lib.training.diverged import check_finite_gradient, check_finite_loss
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ranks.group import Link
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.forward import policy_logprobs, reference_logprobs
from rc1_lib.training.updates.metrics import distance, episode_metrics

_COPY = "ref"
"""TRL's name for its copy of an adapter."""


class TrlEngine(PolicyEngine):
    """An engine that learns through TRL."""

    _made: Trainer | None
    _logged: _Logged

    @abstractmethod
    def _trainer(self, arguments: dict[str, Any], **over: Any) -> Trainer:
        """Create TRL's trainer from its configuration and keywords: model, tokenizer, optimizer, callbacks."""
        ...

    def _train(self, data: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Train through TRL on the data of a step, and send the adapter to the workers.

        Returns:
            TRL's logs as means over the optimizer steps, and `update/steps`, their number.

        Raises:
            DivergedError: if the loss or, without a gradient scaler, a gradient is not finite.
        """
        if self._made is None:  # not in setup: workers and evaluations only play and need no trainer
            self._made = self._make()
        trainer, training = self._made, self.policy.training
        trainer.train_dataset = data
        set_seed(
            int(torch.randint(2**31, (), generator=self._minibatch_rng))
        )  # TRL shuffles with torch's global generator
        gc.freeze()  # TRL collects garbage first; scanning everything loaded before would take 0.4 s
        try:
            trainer.train()
        finally:
            gc.unfreeze()
        self.policy.train(training)
        if self._workers is not None:
            self._on_all_processes(self._load_adapter, self.policy.adapter_state())
        logs = self._logged.taken()
        for log in logs:
            check_finite_loss(log["loss"])
        found = {name: [log[name] for log in logs if log.get(name) is not None] for name in logs[0]}
        return {name: fmean(values) for name, values in found.items() if values} | {"update/steps": float(len(logs))}

    def _make(self) -> Trainer:
        arguments = _arguments_of_a_step(self.device, self.precision, self.seed)
        update, model, self._logged = self._section, self.policy.peft, _Logged()
        with _adapter_kept(model):
            made = self._trainer(
                arguments | {"num_train_epochs": update.epochs, "max_grad_norm": update.max_grad_norm},
                model=model,
                processing_class=self.tokenizer,
                optimizers=(self.optimizer, _rates_kept(self.optimizer)),
                callbacks=[self._logged, _FiniteSteps(self.optimizer, self._scaler)],
            )
        made.remove_callback(PrinterCallback)
        if self._scaler is not None:
            made.accelerator.scaler = self._scaler  # this one's state is in the checkpoint
        return made

    def _build(self, setup: Setup, link: Link | None) -> None:
        self._made = None
        super()._build(setup, link)


class TrlEpisodeEngine(TrlEngine):
    """An engine that learns from episodes through TRL."""

    fixed_kl: ClassVar[bool] = True

    @abstractmethod
    def _learn_with_trl(self, batch: EpisodeBatch) -> dict[str, float]:
        """Learn from the batch. Only the first process calls this."""
        ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Do one update from the batch's `trajectories` and `scores`; `step` is the number of finished steps.

        Raises:
            ParityError: before anything is learned, if sampling and training log-probabilities differ too much.
        """
        collated = self._collated(batch)
        assert isinstance(collated, EpisodeBatch), "this engine learns from episodes"
        return super().train_step(batch) | self._learn_with_trl(collated)

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Only compute metrics, in every process. TRL learns afterwards."""
        return self._episode_metrics(batch, kl_coef, self._shards)

    def _evaluate(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        return self._episode_metrics(batch, kl_coef, ONE_SHARD)

    def _episode_metrics(self, batch: EpisodeBatch, kl_coef: float, shards: Shards) -> dict[str, float]:
        """Return metrics of the episodes, and the distance between sampling and training log-probabilities.

        If the initial policy played them, the KL is from it to the policy.
        """
        how: dict[str, Any] = {"micro_tokens": self._section.micro_tokens, "temperature": self.temperature}
        now_BT = policy_logprobs(self.policy, batch, range(len(batch)), shards=shards, **how)
        ref_BT = reference_logprobs(self.policy, batch, shards=shards, **how)
        played_BT, other_BT = (ref_BT, now_BT) if self.plays_start else (now_BT, ref_BT)
        sampled_N = batch.old_logprobs[batch.action_mask]
        return episode_metrics(batch, other_BT, kl_coef) | {
            "ratio": float((now_BT[batch.action_mask] - sampled_N).exp().mean()),
            **distance(sampled_N, played_BT[batch.action_mask]),
        }


def rows_of_a_pass(minibatch: int, most: int) -> int:
    """Return the largest number of rows, from 1 to `most`, that divides a minibatch evenly."""
    return max(rows for rows in range(1, max(min(most, minibatch), 1) + 1) if minibatch % rows == 0)


def _arguments_of_a_step(device: torch.device, precision: Precision, seed: int) -> dict[str, Any]:
    """Return arguments for a TRL trainer that learns a step's data and saves nothing."""
    return {
        "output_dir": tempfile.gettempdir(),  # required
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",
        "bf16": precision is Precision.BF16,
        "fp16": precision is Precision.FP16,
        "activation_checkpointing": False,  # the policy has its own
        "seed": seed % 2**32,
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
    }


def _rates_kept(optimizer: Optimizer) -> LRScheduler:
    """Return a schedule that does not change the learning rates, because the run's own schedule sets them."""
    return MultiplicativeLR(optimizer, lambda _: 1.0)


@contextmanager
def _adapter_kept(model: PeftModel) -> Iterator[None]:
    """Keep the adapter as it is while a TRL trainer is created: in its precision, and without a copy.

    TRL would round the adapter of a quantised base to bf16, in which small steps change nothing. It would also copy an
    adapter that it did not create, as reference. A new adapter of RC1 changes no output, so TRL can use the model
    without its adapter as reference instead.
    """
    kept = {name: value.data for name, value in model.named_parameters() if value.requires_grad}
    yield
    if _COPY in getattr(model, "peft_config", ()):
        model.delete_adapter(_COPY)
    for name, value in model.named_parameters():
        if name in kept:
            value.data = kept[name]


class _Logged(TrainerCallback):
    """Collects what a trainer logs."""

    def __init__(self) -> None:
        """Start without logs."""
        self._logs: list[dict[str, float]] = []

    def taken(self) -> list[dict[str, float]]:
        """Return the logs since the last call."""
        logs, self._logs = self._logs, []
        return logs

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Keep the log, unless it is the training's summary."""
        if logs is not None and "train_runtime" not in logs:
            self._logs.append(dict(logs))


class _FiniteSteps(TrainerCallback):
    """Stops before an optimizer step with gradients that are not finite."""

    def __init__(self, optimizer: Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        """Watch the steps of `optimizer`. For fp16 pass the scaler, which skips such steps itself."""
        self._optimizer, self._scaler = optimizer, scaler

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check the gradients.

        Raises:
            DivergedError: if one is not finite.
        """
        parameters = [each for group in self._optimizer.param_groups for each in group["params"]]
        check_finite_gradient(parameters, self._scaler)
