"""DPO through TRL's `DPOTrainer` on pairs of the initial policy's rollouts: the engine `trl_dpo`.

RC1 plays and pairs; TRL takes the steps on the pairs, and compares with the policy without its adapter. The rollouts
are the initial policy's throughout, as DPO was published: they follow from seed and step, and need no file.
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
from rc1_lib.training.engines.torch_dpo import Pair, pairs_of, share_that_differ
from rc1_lib.training.engines.trl_engine import TrlEpisodeEngine
from rc1_lib.training.updates.batch import EpisodeBatch

FIGURES = (
    "loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen",
    "logps/rejected", "grad_norm", "update/steps",
)  # fmt: skip
"""What TRL logs: of pairs, means over those of a step of the optimizer, and then over its steps."""
_A_PAIR = {"prompt": "a", "chosen": "b", "rejected": "c"}
"""TRL's trainer wants a pair when it is made; those that it learns from come with each step."""


class TrlDPO(TrlEpisodeEngine):
    """The engine `trl_dpo`; what it learns from are groups of the initial policy's rollouts (strategy `groups`)."""

    plays_start: ClassVar[bool] = True

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        config, section = setup.config, setup.config.training.trl_dpo
        self._train_adapter(base, setup)
        self._settings: dict[str, Any] = {
            # A pass has one pair, so that the mean over passes is one over pairs.
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
            # Read as it goes, it is not tokenised with a progress bar; it has no length, so that steps are asked for.
            train_dataset=Dataset.from_list([_A_PAIR]).to_iterable_dataset(),
            **over,
        )
        made.args.max_steps = -1  # from now on as many as the data has
        return made

    def _taught(self, batch: EpisodeBatch) -> dict[str, float]:
        """Learn from the pairs whose two rollouts scored differently.

        Raises:
            RC1Error: when no prompt has two scored rollouts.
        """
        found = pairs_of(batch.scores, batch.groups)
        pairs = [pair for pair in found if pair.differ]
        learned = self._train([inputs_of(batch, pair) for pair in pairs]) if pairs else {}
        return {name: learned.get(name, 0.0) for name in FIGURES} | share_that_differ(found)


def only_pass(passes: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The data collator: pairs are put together already."""
    (one,) = passes
    return dict(one)


def inputs_of(batch: EpisodeBatch, pair: Pair) -> dict[str, Tensor]:
    """A pair as TRL's loss takes it: the chosen and then the rejected, only the policy's own tokens learned."""
    ids_2t, own_2t, mask_2t = batch.cut(torch.tensor([pair.chosen, pair.rejected], device=batch.ids.device))
    return {"input_ids": ids_2t, "attention_mask": mask_2t, "completion_mask": own_2t.long()}
