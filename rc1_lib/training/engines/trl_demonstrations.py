"""Supervised training of a run's adapter through TRL's `SFTTrainer`: the engine `trl_sft`, in a run.

TRL brings the loss and its figures. Demonstrations, steps of the optimizer and everything around them are those of
`pure_pt_sft`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from datasets import Dataset
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.engines.pure_pt_demonstrations import PurePtDemonstrations
from rc1_lib.training.labelled_rows import IGNORED
from rc1_lib.training.models import model_section
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.sft.lesson import SFTLesson
from rc1_lib.training.spans import Part, span
from rc1_lib.training.train_config import LoraSection
from rc1_lib.training.trl_loss import arguments_of_a_loss, figures_of, weights_kept
from rc1_lib.training.updates.batch import TokenBatch
from rc1_lib.training.updates.own_tokens import OwnTokens


class TrlDemonstrations(PurePtDemonstrations):
    """The engine `trl_sft` of a run; what it learns from are demonstrations (strategy `demonstrations`)."""

    figures: ClassVar[Mapping[str, str]] = {"mean_token_accuracy": "right", "entropy": "entropy"}

    def _begin(self, setup: EpisodeSetup, base: PreTrainedModel, adapter: LoraSection) -> None:
        super()._begin(setup, base, adapter)
        arguments = SFTConfig(
            **arguments_of_a_loss(self.device, self.precision, self.seed), dataset_kwargs={"skip_prepare_dataset": True}
        )
        tokenizer = load_tokenizer(model_section(setup.config, setup.base))
        self._losses = _Losses.over(self.policy.peft, tokenizer, arguments)
        self._read_by = self._read_with_trl

    def _read_with_trl(
        self, lesson: SFTLesson, own: OwnTokens, scale: Callable[[Tensor], Tensor]
    ) -> Mapping[str, Tensor]:
        with span(Part.FORWARD):
            loss, means = self._losses.read(inputs_of(lesson.batch, own), lesson.tokens)
        with span(Part.BACKWARD):
            scale(loss).backward()  # type: ignore[no-untyped-call]
        sums = {of: loss.new_tensor(means[name] * len(own.rows)) for name, of in self.figures.items()}
        return {"nats": loss.detach() * lesson.tokens, **sums}


class _Losses(SFTTrainer):
    """TRL's trainer as a loss: nothing of its loop, its data or its checkpoints is used."""

    @classmethod
    def over(cls, model: PeftModel, tokenizer: PreTrainedTokenizerBase, arguments: SFTConfig) -> _Losses:
        """The loss over a model, whose weights stay as they are."""
        with weights_kept(model):
            return cls(
                model=model,
                args=arguments,
                train_dataset=Dataset.from_list([{"input_ids": [0, 0], "labels": [IGNORED, 0]}]),
                processing_class=tokenizer,
            )

    def read(self, inputs: Mapping[str, Tensor], tokens: int) -> tuple[Tensor, dict[str, float]]:
        """The loss of some rows as a share of `tokens` learned ones, and TRL's means over the rows' own."""
        loss = cast(Tensor, cast(Any, self).compute_loss(self.model, dict(inputs), num_items_in_batch=tokens))
        return loss, figures_of(self._metrics)


def inputs_of(batch: TokenBatch, own: OwnTokens) -> dict[str, Tensor]:
    """Rows of a batch as TRL's loss takes them: labels where a token is own, nowhere else."""
    rows_b = own.rows.unique_consecutive()  # type: ignore[no-untyped-call]
    ids_bt, own_bt, mask_bt = batch.cut(rows_b)
    return {"input_ids": ids_bt, "attention_mask": mask_bt, "labels": ids_bt.masked_fill(~own_bt, IGNORED)}
