"""Supervised finetuning through TRL's `SFTTrainer`: the engine `trl_sft`."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from rc1_lib.training.api import Setup
from rc1_lib.training.engines.pure_pt_sft import PurePtSFT
from rc1_lib.training.engines.trl_engine import TrlEngine, rows_of_a_pass
from rc1_lib.training.updates.batch import TokenBatch

_IGNORED = -100
"""Label of a token that is not learned, as in transformers."""
_NO_ROWS = [{"input_ids": [0, 0], "labels": [_IGNORED, 0]}]
"""`SFTTrainer` needs rows when it is created. The real rows come with each step."""


class TrlSFT(TrlEngine, PurePtSFT):
    """The engine `trl_sft`. It learns from demonstrations (strategy `demonstrations`)."""

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        super()._create_policy(setup, base)
        minibatch = -(-setup.rows // setup.update.minibatches)
        rows = rows_of_a_pass(minibatch, setup.update.micro_tokens // setup.max_tokens)
        self._sizes = {"per_device_train_batch_size": rows, "gradient_accumulation_steps": minibatch // rows}

    def _trainer(self, arguments: dict[str, Any], **over: Any) -> SFTTrainer:
        return SFTTrainer(
            args=SFTConfig(**arguments | self._sizes, dataset_kwargs={"skip_prepare_dataset": True}),
            train_dataset=Dataset.from_list(_NO_ROWS),
            **over,
        )

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Do one update from the batch's `demonstrations`.

        Returns:
            `loss` (nats per trained token, before its step), `lr`, `grad_norm`, `update/steps`, and TRL's
            `mean_token_accuracy` and `entropy`, which are means over its passes.

        Raises:
            DivergedError: if the loss or, without a gradient scaler, a gradient is not finite.
        """
        learned = self._train(labelled(self._collated(batch)))
        names = ("loss", "mean_token_accuracy", "entropy", "grad_norm", "update/steps")
        return {name: learned[name] for name in names} | {"lr": self._rates[0]}


def labelled(batch: TokenBatch) -> list[dict[str, list[int]]]:
    """Return the dialogues of a batch as rows for `SFTTrainer`, with labels only for action tokens."""
    labels_BT = batch.ids.masked_fill(~batch.action_mask, _IGNORED)
    return [
        {"input_ids": batch.ids[row, :end].tolist(), "labels": labels_BT[row, :end].tolist()}
        for row, end in enumerate(batch.lengths.tolist())
    ]
