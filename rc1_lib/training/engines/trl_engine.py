"""What the engines share whose updates are trainings of TRL's own.

Rollouts, scores, the loop over the steps, callbacks and checkpoints are those of every engine. Each step is a
training through TRL, with the run's own optimizer, by the first process; the others, which only play, get the adapter.
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
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.forward import policy_logprobs, reference_logprobs
from rc1_lib.training.updates.metrics import distance, episode_metrics

_COPY = "ref"
"""TRL's name of its copy of an adapter."""


class TrlEngine(PolicyEngine):
    """An engine that learns through TRL."""

    _made: Trainer | None
    _logged: _Logged

    @abstractmethod
    def _trainer(self, arguments: dict[str, Any], **over: Any) -> Trainer:
        """TRL's trainer, by arguments for its configuration, and keywords: model, tokenizer, optimizer, callbacks."""
        ...

    def _train(self, data: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Train through TRL on the data of a step, and give every process what was learned.

        Returns:
            What TRL logs, as means over the optimizer's steps, and `update/steps`, their number.

        Raises:
            DivergedError: when gradients are not finite and no scaler is there to skip the step, or the loss is not.
        """
        if self._made is None:  # here, since processes and evaluations that only play need none
            self._made = self._make()
        trainer, training = self._made, self.policy.training
        trainer.train_dataset = data
        set_seed(int(torch.randint(2**31, (), generator=self._dealer)))  # TRL deals minibatches by torch's generator
        gc.freeze()  # it collects garbage first, which takes 0.4 s where all that was loaded before is looked through
        try:
            trainer.train()
        finally:
            gc.unfreeze()
        self.policy.train(training)
        if self._workers is not None:
            self._together(self._load_adapter, self.policy.adapter_state())
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
            made.accelerator.scaler = self._scaler  # the one whose state is saved
        return made

    def _build(self, setup: Setup, link: Link | None) -> None:
        self._made = None
        super()._build(setup, link)


class TrlEpisodeEngine(TrlEngine):
    """An engine that learns from episodes through TRL."""

    fixed_kl: ClassVar[bool] = True

    @abstractmethod
    def _taught(self, batch: EpisodeBatch) -> dict[str, float]:
        """Learn from the batch, in this process alone."""
        ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `trajectories` and `scores`; `step` counts the finished ones.

        Raises:
            ParityError: before anything is learned, when the policy reads the tokens with other probabilities than they
                were sampled with.
        """
        collated = self._collated(batch)
        assert isinstance(collated, EpisodeBatch), "it learns from episodes"
        return super().train_step(batch) | self._taught(collated)

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Only look, in every process: TRL learns after it."""
        return self._seen(batch, kl_coef, self._shards)

    def _look(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        return self._seen(batch, kl_coef, ONE)

    def _seen(self, batch: EpisodeBatch, kl_coef: float, shards: Shards) -> dict[str, float]:
        """What the episodes were like, and how far what samples is from what reads them at the same temperature.

        Where the initial policy played them, the KL is from it to the policy.
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
    """The most rows, at least one and at most `most`, that divide a minibatch into equal passes."""
    return max(rows for rows in range(1, max(min(most, minibatch), 1) + 1) if minibatch % rows == 0)


def _arguments_of_a_step(device: torch.device, precision: Precision, seed: int) -> dict[str, Any]:
    """The arguments of any trainer of TRL that learns a step's data and saves nothing."""
    return {
        "output_dir": tempfile.gettempdir(),  # required
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",
        "bf16": precision is Precision.BF16,
        "fp16": precision is Precision.FP16,
        "activation_checkpointing": False,  # the policy does it where it is asked for
        "seed": seed % 2**32,
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
    }


def _rates_kept(optimizer: Optimizer) -> LRScheduler:
    """A schedule that leaves the learning rates as the run's own has set them."""
    return MultiplicativeLR(optimizer, lambda _: 1.0)


@contextmanager
def _adapter_kept(model: PeftModel) -> Iterator[None]:
    """While a trainer of TRL is made over the model: its adapter, if it has one, keeps its precision, without a copy.

    TRL rounds the adapter of a quantised base to bf16, which small steps would not move any more. It copies an adapter
    that it did not make, to compare with. An adapter of RC1 begins as one that changes nothing; without a copy TRL
    compares with the model without it, which is the same.
    """
    kept = {name: value.data for name, value in model.named_parameters() if value.requires_grad}
    yield
    if _COPY in getattr(model, "peft_config", ()):
        model.delete_adapter(_COPY)
    for name, value in model.named_parameters():
        if name in kept:
            value.data = kept[name]


class _Logged(TrainerCallback):
    """Keeps what a trainer logs."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._logs: list[dict[str, float]] = []

    def taken(self) -> list[dict[str, float]]:
        """The logs since the last call."""
        logs, self._logs = self._logs, []
        return logs

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Keep it, but for a training's summary."""
        if logs is not None and "train_runtime" not in logs:
            self._logs.append(dict(logs))


class _FiniteSteps(TrainerCallback):
    """Refuses a step of the optimizer along gradients that are not finite."""

    def __init__(self, optimizer: Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        """Before the steps of `optimizer`; a scaler, for fp16, skips such steps itself."""
        self._optimizer, self._scaler = optimizer, scaler

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the gradients.

        Raises:
            DivergedError: when one is not finite.
        """
        parameters = [each for group in self._optimizer.param_groups for each in group["params"]]
        check_finite_gradient(parameters, self._scaler)
