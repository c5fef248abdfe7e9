"""DPO through TRL's `DPOTrainer` on pairs of the start policy's takes: the engine `trl_dpo`.

TRL brings the loss, the reference's log-probabilities and the figures of the pairs. Playing, pairing, steps of the
optimizer and everything around them are RC1's, so that checkpoints, processes and exact resuming are those of every
other engine. The takes are the start policy's throughout, as DPO was published: what a step's are is decided by seed
and step, so they are played when they are needed and need no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from datasets import Dataset
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.dpo.trl_update import FIGURES, Logprobs, PairsRead, trl_dpo_update
from rc1_lib.training.episode_engine import EpisodeEngine
from rc1_lib.training.models import model_section
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.train_config import LoraSection
from rc1_lib.training.trl_loss import arguments_of_a_loss, figures_of, weights_kept
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.parity import distance, farther
from rc1_lib.training.updates.reading import Manner, policy_logprobs, read_episodes
from rc1_lib.training.updates.stepper import Stepper
from rc1_lib.training.updates.tally import episode_metrics

_COPY = "ref"
"""TRL's name of its copy of an adapter."""


class TrlDPO(EpisodeEngine):
    """The engine `trl_dpo`; what it learns from are groups of the start policy's takes (strategy `groups`)."""

    plays_start: ClassVar[bool] = True

    def _begin(self, setup: EpisodeSetup, base: PreTrainedModel, adapter: LoraSection) -> None:
        config = setup.config
        self._train_adapter(base, adapter, config.lr)
        self._section = config.training.trl_dpo
        arguments = DPOConfig(
            **arguments_of_a_loss(self.device, self.precision, self.seed),
            beta=config.kl_coef,
            loss_type=[self._section.loss_type],
            max_length=None,
        )
        tokenizer = load_tokenizer(model_section(config, setup.base))
        self._losses = _Losses.over(self.policy.peft, tokenizer, arguments)

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        before = self._seen(batch, kl_coef, self._shards)
        stepper = Stepper(self.optimizer, self._section.max_grad_norm, self._scaler)
        learned = trl_dpo_update(
            self._losses, batch, stepper, self._section, self._dealer, partial(self._read_rows, batch), self._shards
        )
        apart = {name: before[name] for name in ("policy/sampling_gap", "policy/sampling_far")}
        return before | learned | farther(apart, learned)

    def _read_rows(self, batch: EpisodeBatch, rows: Sequence[int]) -> Logprobs:
        """Some episodes at the temperature of TRL's passes, to look at these beside them."""
        manner = Manner(self._section.micro_tokens, 1.0)
        now_BT = policy_logprobs(self.policy, batch, rows, manner, self._shards)
        with self.policy.reference():
            return Logprobs(now_BT, policy_logprobs(self.policy, batch, rows, manner, self._shards))

    def _objective(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        return self._seen(batch, kl_coef, ONE)

    def _seen(self, batch: EpisodeBatch, kl_coef: float, shards: Shards) -> dict[str, float]:
        """What the episodes were like; since the start policy played them, the KL is the start's to the policy.

        `policy/sampling_gap` and `policy/sampling_far` compare how tokens were sampled with how the reference, which is
        the start, reads them at the temperature that they were sampled at. TRL's own passes know temperature 1 alone,
        so they are held against a reading at that one, see `trl_dpo_update`; an update has the larger of the two.
        """
        manner = Manner(self._section.micro_tokens, self.temperature)
        now_BT = policy_logprobs(self.policy, batch, range(len(batch)), manner, shards)
        start_BT = read_episodes(self.policy, batch, manner, shards).ref_logprobs
        return episode_metrics(batch, now_BT, kl_coef) | {
            "ratio": float((now_BT - batch.old_logprobs)[batch.own].exp().mean()),
            **distance(batch.old_logprobs[batch.own], start_BT[batch.own]),
        }


class _Losses(DPOTrainer):
    """TRL's trainer as a loss: nothing of its loop, its data or its checkpoints is used."""

    @classmethod
    def over(cls, model: PeftModel, tokenizer: PreTrainedTokenizerBase, arguments: DPOConfig) -> _Losses:
        """The loss over a model whose adapter is fresh, so that the reference is the model without it."""
        # The constructor wants rows; a dataset that is read as it goes is not tokenised with a bar of progress.
        row = {"prompt": "a", "chosen": "b", "rejected": "c"}
        with weights_kept(model):
            made = cls(
                model=model,
                args=arguments,
                train_dataset=Dataset.from_list([row]).to_iterable_dataset(),
                processing_class=tokenizer,
            )
        # TRL copies an adapter that it did not make itself, to compare with; without the copy it switches ours off.
        model.delete_adapter(_COPY)
        return made

    def read(self, inputs: Mapping[str, Tensor]) -> PairsRead:
        """The mean loss of pairs, what TRL measured of them, and the log-probabilities that it was made of."""
        own_bt = inputs["completion_mask"][:, 1:].bool()
        passes: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            passes.append(output.log_probs.detach()[:, -own_bt.shape[1] :][own_bt])

        handle = cast(nn.Module, self.model).register_forward_hook(keep)
        try:
            loss = cast(Tensor, cast(Any, self).compute_loss(self.model, dict(inputs)))
        finally:
            handle.remove()
        measured = figures_of(self._metrics)
        policy, reference = passes  # in this order: the second one without the adapter
        return PairsRead(loss, {name: measured[name] for name in FIGURES}, Logprobs(policy, reference))
