"""GRPO through TRL's `GRPOTrainer` on the policy's takes in RC1's dialogue world: the engine `trl_grpo`.

TRL brings the loss: log-probabilities, ratios and their clipping by token or by episode, the KL to the reference, the
mean over tokens and episodes. Takes, advantages, steps of the optimizer and everything around them are `torch_grpo`'s.

TRL's own loop plays in this world too, through `rc1_lib.environment.trl`. No run of RC1 is trained by it: where the
takes of a generation serve several steps, as `minibatches` and `epochs` have it, a resumed one makes others, since its
checkpoints do not hold them; and its tokens are drawn from one generator for all takes, so that a take hangs on which
others are played beside it, and on how many processes share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from datasets import Dataset
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from rc1_lib.config.training import Training
from rc1_lib.config.updates import GRPO, Update
from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.engines.torch_grpo import TorchGRPO
from rc1_lib.training.grpo.trl_gradients import Read
from rc1_lib.training.models import model_section
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.train_config import LoraSection
from rc1_lib.training.trl_loss import arguments_of_a_loss, figures_of, weights_kept


class TrlGRPO(TorchGRPO):
    """The engine `trl_grpo`; what it learns from are groups of takes (strategy `groups`)."""

    def _begin(self, setup: EpisodeSetup, base: PreTrainedModel, adapter: LoraSection) -> None:
        config, section = setup.config, setup.config.training.trl_grpo
        super()._begin(setup, base, adapter)
        arguments = GRPOConfig(
            **arguments_of_a_loss(self.device, self.precision, self.seed),
            per_device_train_batch_size=2,
            num_generations=2,  # it makes none
            beta=0.0,  # said anew at every reading; here it would only have TRL copy the adapter
            epsilon=self._settings.clip,
            epsilon_high=self._settings.clip_high,
            loss_type=section.loss_type,
            importance_sampling_level=section.importance_sampling_level,
            use_bias_correction_kl=section.use_bias_correction_kl,
            temperature=self.temperature,
            max_completion_length=self._settings.most_tokens,
        )
        self._losses = _Losses.over(self.policy.peft, load_tokenizer(model_section(config, setup.base)), arguments)

    def _sections_of(self, training: Training) -> tuple[Update, GRPO]:
        return training.trl_grpo, training.trl_grpo


class _Losses(GRPOTrainer):
    """TRL's trainer as a loss: nothing of its loop, its generation, its rewards or its checkpoints is used."""

    _weighs_kl: bool

    @classmethod
    def over(cls, model: PeftModel, tokenizer: PreTrainedTokenizerBase, arguments: GRPOConfig) -> _Losses:
        """The loss over a model, whose weights stay as they are."""
        with weights_kept(model):
            made = cls(
                model=model,
                reward_funcs=_scored_before,
                args=arguments,
                train_dataset=Dataset.from_list([{"prompt": "a"}]),
                processing_class=tokenizer,
            )
        made._weighs_kl = arguments.use_bias_correction_kl
        made.current_gradient_accumulation_steps = 1  # of its loop; where a model is in training mode, it divides by it
        return made

    def read(self, inputs: Mapping[str, Tensor], beta: float) -> Read:
        """The loss of takes, and what was read on the way."""
        self.beta, own_bt = beta, inputs["tool_mask"].bool()
        passes: list[tuple[Tensor, Tensor]] = []

        def keep(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            # TRL weighs what the world said by 0 later, and 0 times infinity is no number: it is 0 from here on.
            output.log_probs = output.log_probs[:, -own_bt.shape[1] :].masked_fill(~own_bt, 0.0)
            passes.append((output.log_probs, output.entropy[:, -own_bt.shape[1] :]))
            return output

        handle = cast(nn.Module, self.model).register_forward_hook(keep)
        try:
            loss = cast(Tensor, cast(Any, self).compute_loss(self.model, dict(inputs)))
        finally:
            handle.remove()
        clipped = figures_of(self._metrics)["clip_ratio/region_mean"]
        ((logprobs_bt, entropies_bt),) = passes
        weights_bt = self._kl_weights(logprobs_bt.detach() - inputs["old_per_token_logps"], own_bt)
        return Read(loss, logprobs_bt[own_bt], entropies_bt[own_bt], weights_bt[own_bt], clipped)

    def _kl_weights(self, log_ratio_bt: Tensor, own_bt: Tensor) -> Tensor:
        """What TRL weighs the KL of every token by."""
        if not self._weighs_kl:
            return torch.ones_like(log_ratio_bt)
        if self.importance_sampling_level == "sequence":
            means_b1 = (log_ratio_bt * own_bt).sum(1, keepdim=True) / own_bt.sum(1, keepdim=True)
            log_ratio_bt = means_b1.expand_as(log_ratio_bt)
        return log_ratio_bt.exp()


def _scored_before(**columns: Any) -> list[float | None]:
    """The reward that TRL's trainer has to be given, and never asks: a take comes with its score."""
    raise AssertionError("TRL asked for a reward, but takes are scored before it sees them")
