"""Supervised training of a run's adapter through TRL's `SFTTrainer`: the engine `trl_sft`, in a run."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from rc1_lib.training.engines.pure_pt_demonstrations import PurePtDemonstrations
from rc1_lib.training.engines.trl_engine import TrlEngine, rows_of_a_pass
from rc1_lib.training.labelled_rows import IGNORED
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.train_config import LoraSection
from rc1_lib.training.trl_trainers import NO_ROWS
from rc1_lib.training.updates.batch import TokenBatch


class TrlDemonstrations(TrlEngine, PurePtDemonstrations):
    """The engine `trl_sft` of a run; what it learns from are demonstrations (strategy `demonstrations`)."""

    def _begin(self, setup: EpisodeSetup, base: PreTrainedModel, adapter: LoraSection) -> None:
        super()._begin(setup, base, adapter)
        minibatch = -(-setup.config.batch_size // self._section.minibatches)
        rows = rows_of_a_pass(minibatch, self._section.micro_tokens // setup.config.training.max_tokens)
        self._sizes = {"per_device_train_batch_size": rows, "gradient_accumulation_steps": minibatch // rows}

    def _trainer(self, arguments: dict[str, Any], **over: Any) -> SFTTrainer:
        return SFTTrainer(
            args=SFTConfig(**arguments | self._sizes, dataset_kwargs={"skip_prepare_dataset": True}),
            train_dataset=Dataset.from_list(NO_ROWS),
            **over,
        )

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `demonstrations`.

        Returns:
            `loss` (nats a learned token, before the step on it), `lr`, `grad_norm`, `update/steps`, and TRL's
            `mean_token_accuracy` and `entropy`, which are means of its passes.

        Raises:
            DivergedError: when the loss or its gradients are not finite and no scaler is there to skip the step.
        """
        learned = self._train(labelled(self._collated(batch)))
        names = ("loss", "mean_token_accuracy", "entropy", "grad_norm", "update/steps")
        return {name: learned[name] for name in names} | {"lr": self._rates[0]}


def labelled(batch: TokenBatch) -> list[dict[str, list[int]]]:
    """The dialogues of a batch as rows of `SFTTrainer`: labels where a token is own, nowhere else."""
    labels_BT = batch.ids.masked_fill(~batch.own, IGNORED)
    return [
        {"input_ids": batch.ids[row, :end].tolist(), "labels": labels_BT[row, :end].tolist()}
        for row, end in enumerate(batch.lengths.tolist())
    ]
