"""DPO through TRL's `DPOTrainer` on pairs of the initial policy's rollouts: the engine `trl_dpo`.

RC1 plays and forms the pairs. TRL takes the optimizer steps; its reference is the policy without its adapter. As in the
original DPO, the rollouts always come from the initial policy. Seed and step determine them, so no file is needed.

Each step is a short TRL training with the run's own optimizer in the first process. The workers only play; they receive
the new adapter.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar

import torch
from datasets import Dataset
from peft import PeftModel
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, MultiplicativeLR
from transformers import PreTrainedModel, PrinterCallback, TrainerCallback, set_seed
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from rc1_lib.errors import RC1Error
from rc1_lib.training.api import Setup
from rc1_lib.training.device import Precision
from rc1_lib.training.diverged import check_finite_gradient, check_finite_loss
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ranks.group import Group
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.forward import policy_logprobs, reference_logprobs
from rc1_lib.training.updates.metrics import distance, episode_metrics

FIGURES = (
    "loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen",
    "logps/rejected", "grad_norm", "update/steps",
)  # fmt: skip
"""Metrics that TRL logs: means over the pairs of an optimizer step, and then over the steps."""
_A_PAIR = {"prompt": "a", "chosen": "b", "rejected": "c"}
"""TRL's trainer needs a pair when it is created. The real pairs come with each step."""
_COPY = "ref"
"""TRL's name for its copy of an adapter."""


class TrlDPO(PolicyEngine):
    """The engine `trl_dpo`. It learns from groups of the initial policy's rollouts (strategy `groups`)."""

    plays_start: ClassVar[bool] = True
    fixed_kl: ClassVar[bool] = True
    _made: DPOTrainer | None
    _logged: _Logged

    def _build(self, setup: Setup, group: Group | None) -> None:
        self._made = None
        super()._build(setup, group)

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        config = setup.config
        self._train_adapter(base, setup)
        self._settings: dict[str, Any] = {
            # One pair per forward pass, so that TRL's mean over passes is a mean over pairs.
            "per_device_train_batch_size": 1,
            "gradient_accumulation_steps": -(-config.prompts // config.training.update.minibatches),
            "num_train_epochs": 1,
            "max_grad_norm": config.training.update.max_grad_norm,
            "beta": config.kl_coef,
            "loss_type": ["sigmoid"],  # DPO's own
            "max_length": None,
        }

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Learn from the pairs whose two rollouts have different scores.

        Args:
            batch: `trajectories` and `scores`; `step` is the number of finished steps.

        Raises:
            ParityError: before anything is learned, if sampling and training log-probabilities differ too much.
            RC1Error: if no prompt has two scored rollouts.
        """
        collated = self._collated(batch)
        assert isinstance(collated, EpisodeBatch), "this engine learns from episodes"
        metrics = super().train_step(batch)
        found = pairs_of(collated.scores, collated.groups)
        pairs = [pair for pair in found if pair.differ]
        learned = self._train([inputs_of(collated, pair) for pair in pairs]) if pairs else {}
        differ = len(pairs) / len(found)
        of_pairs = {"pairs/differ": differ, "frac_reward_zero_std": 1.0 - differ}
        known = {name: learned[name] for name in FIGURES if name in learned}  # none without pairs
        return metrics | {"update/steps": 0.0} | known | of_pairs

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Only compute metrics, in every process. TRL learns afterwards."""
        return self._episode_metrics(batch, kl_coef, self._shards)

    def _evaluate(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        return self._episode_metrics(batch, kl_coef, ONE_SHARD)

    def _episode_metrics(self, batch: EpisodeBatch, kl_coef: float, shards: Shards) -> dict[str, float]:
        """Return metrics of the episodes, and the distance between sampling and training log-probabilities.

        The initial policy played them, so the KL is from it to the policy.
        """
        how: dict[str, Any] = {"micro_tokens": self._section.micro_tokens, "temperature": self.temperature}
        now_BT = policy_logprobs(self.policy, batch, range(len(batch)), shards=shards, **how)
        ref_BT = reference_logprobs(self.policy, batch, shards=shards, **how)
        sampled_N = batch.old_logprobs[batch.action_mask]
        return episode_metrics(batch, now_BT, kl_coef) | {
            "ratio": float((now_BT[batch.action_mask] - sampled_N).exp().mean()),
            **distance(sampled_N, ref_BT[batch.action_mask]),
        }

    def _train(self, data: Sequence[dict[str, Tensor]]) -> dict[str, float]:
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
        # Minibatches of one size: a last one of few pairs would move the policy as far as a whole one
        updates = -(-len(data) // int(self._settings["gradient_accumulation_steps"]))
        trainer.args.gradient_accumulation_steps = -(-len(data) // updates)
        # TRL shuffles with torch's global generator.
        set_seed(int(torch.randint(2**31, (), generator=self._minibatch_rng)))
        gc.freeze()  # TRL collects garbage first; scanning everything loaded before would take 0.4 s
        try:
            trainer.train()
        finally:
            gc.unfreeze()
        self.policy.train(training)
        if not self._shards.alone:
            self._on_all_processes(self._load_adapter, self.policy.adapter_state())
        logs = self._logged.taken()
        for log in logs:
            check_finite_loss(log["loss"])
        found = {name: [log[name] for log in logs if log.get(name) is not None] for name in logs[0]}
        return {name: fmean(values) for name, values in found.items() if values} | {"update/steps": float(len(logs))}

    def _make(self) -> DPOTrainer:
        arguments = _arguments_of_a_step(self.device, self.precision, self.seed)
        model, self._logged = self.policy.peft, _Logged()
        with _adapter_kept(model):
            made = DPOTrainer(
                args=DPOConfig(**arguments | self._settings, max_steps=1),
                data_collator=only_pass,
                # An iterable dataset is not tokenized up front with a progress bar. It has no length, so TRL needs
                # max_steps.
                train_dataset=Dataset.from_list([_A_PAIR]).to_iterable_dataset(),
                model=model,
                processing_class=self.tokenizer,
                optimizers=(self.optimizer, _rates_kept(self.optimizer)),  # type: ignore[arg-type]  # any schedule will do
                callbacks=[self._logged, _FiniteSteps(self.optimizer, self._scaler)],
            )
        made.args.max_steps = -1  # from now on as many as the step's data give
        made.remove_callback(PrinterCallback)
        if self._scaler is not None:
            made.accelerator.scaler = self._scaler  # this one's state is in the checkpoint
        return made


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rollouts of a prompt, as rows of the batch.

    Attributes:
        differ: whether their scores differ; if not, nothing is learned from them.
    """

    chosen: int
    rejected: int
    differ: bool


def pairs_of(scores_B: Tensor, groups_B: Tensor) -> list[Pair]:
    """Return a pair for every group of at least two rollouts, in the order of the groups.

    Source: best and worst of several rollouts as in Dong et al., "RLHF Workflow: From Reward Modeling to Online RLHF"
    (2024), section 3.2.

    Args:
        scores_B: finite. Of equal scores, the first in the batch counts as best and the last as worst.
        groups_B: number of each rollout's group.

    Raises:
        RC1Error: if no group has two rollouts.
    """
    takes: dict[int, list[int]] = {}
    for row, group in enumerate(groups_B.tolist()):
        takes.setdefault(group, []).append(row)
    scores = scores_B.tolist()
    found = []
    for rows in (takes[group] for group in sorted(takes) if len(takes[group]) > 1):
        best, worst = max(rows, key=lambda row: (scores[row], -row)), min(rows, key=lambda row: (scores[row], -row))
        found.append(Pair(best, worst, scores[best] > scores[worst]))
    if not found:
        raise RC1Error(
            f"found {len(scores)} scored rollouts of {len(takes)} prompts in this step, expected two rollouts of at "
            "least one prompt to form a pair; raise training.update.group_size, or find out why the judge scores so few"
        )
    return found


def only_pass(passes: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the only element: the data collator for pairs that are already collated."""
    (one,) = passes
    return dict(one)


def inputs_of(batch: EpisodeBatch, pair: Pair) -> dict[str, Tensor]:
    """Return a pair in the format of TRL's loss: chosen, then rejected. Only action tokens are learned."""
    ids_2t, own_2t, mask_2t = batch.cut(torch.tensor([pair.chosen, pair.rejected], device=batch.ids.device))
    return {"input_ids": ids_2t, "attention_mask": mask_2t, "completion_mask": own_2t.long()}


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
