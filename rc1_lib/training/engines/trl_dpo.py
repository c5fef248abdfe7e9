"""DPO through TRL's `DPOTrainer` on pairs of the initial policy's rollouts: the engine `trl_dpo`.

RC1 plays and forms the pairs. TRL takes the optimizer steps; its reference is the policy without its adapter. As in the
original DPO, the rollouts always come from the initial policy. Seed and step determine them, so no file is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedModel
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from rc1_lib.training.api import Setup
from rc1_lib.training.engines.torch_dpo import Pair, pair_metrics, pairs_of
from rc1_lib.training.engines.trl_engine import TrlEpisodeEngine
from rc1_lib.training.updates.batch import EpisodeBatch

FIGURES = (
    "loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen",
    "logps/rejected", "grad_norm", "update/steps",
)  # fmt: skip
"""Metrics that TRL logs: means over the pairs of an optimizer step, and then over the steps."""
_A_PAIR = {"prompt": "a", "chosen": "b", "rejected": "c"}
"""TRL's trainer needs a pair when it is created. The real pairs come with each step."""


class TrlDPO(TrlEpisodeEngine):
    """The engine `trl_dpo`. It learns from groups of the initial policy's rollouts (strategy `groups`)."""

    plays_start: ClassVar[bool] = True

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        config, section = setup.config, setup.config.training.trl_dpo
        self._train_adapter(base, setup)
        self._settings: dict[str, Any] = {
            # One pair per forward pass, so that TRL's mean over passes is a mean over pairs.
            "per_device_train_batch_size": 1,
            "gradient_accumulation_steps": -(-config.prompts // config.training.update.minibatches),
            "beta": config.kl_coef,
            "loss_type": [section.loss_type],
            "max_length": None,
        }

    def _trainer(self, arguments: dict[str, Any], **over: Any) -> DPOTrainer:
        made = DPOTrainer(
            args=DPOConfig(**arguments | self._settings, max_steps=1),
            data_collator=only_pass,
            # An iterable dataset is not tokenized up front with a progress bar. It has no length, so TRL needs
            # max_steps.
            train_dataset=Dataset.from_list([_A_PAIR]).to_iterable_dataset(),
            **over,
        )
        made.args.max_steps = -1  # from now on as many as the step's data give
        return made

    def _learn_with_trl(self, batch: EpisodeBatch) -> dict[str, float]:
        """Learn from the pairs whose two rollouts have different scores.

        Raises:
            RC1Error: if no prompt has two scored rollouts.
        """
        found = pairs_of(batch.scores, batch.groups)
        pairs = [pair for pair in found if pair.differ]
        learned = self._train([inputs_of(batch, pair) for pair in pairs]) if pairs else {}
        return {name: learned.get(name, 0.0) for name in FIGURES} | pair_metrics(found)


def only_pass(passes: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the only element: the data collator for pairs that are already collated."""
    (one,) = passes
    return dict(one)


def inputs_of(batch: EpisodeBatch, pair: Pair) -> dict[str, Tensor]:
    """Return a pair in the format of TRL's loss: chosen, then rejected. Only action tokens are learned."""
    ids_2t, own_2t, mask_2t = batch.cut(torch.tensor([pair.chosen, pair.rejected], device=batch.ids.device))
    return {"input_ids": ids_2t, "attention_mask": mask_2t, "completion_mask": own_2t.long()}
