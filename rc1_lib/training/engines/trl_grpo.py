"""GRPO through TRL's `GRPOTrainer` on the policy's rollouts in RC1's environment: the engine `trl_grpo`.

RC1 plays and scores a step's episodes. TRL receives them through its `rollout_func` and a reward function that returns
their scores. TRL does the rest: advantages, minibatches, epochs, clipped ratios, and the KL to the reference.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from rc1_lib.training.api import Setup
from rc1_lib.training.engines.trl_engine import TrlEpisodeEngine, rows_of_a_pass
from rc1_lib.training.rollout.decoder import longest_dialogue
from rc1_lib.training.updates.batch import EpisodeBatch

FIGURES = {
    "loss": "loss", "grad_norm": "grad_norm", "policy/entropy_avg": "entropy",
    "policy/clipfrac_avg": "clip_ratio/region_mean", "frac_reward_zero_std": "frac_reward_zero_std",
    "loss/kl_avg": "kl", "update/steps": "update/steps",
}  # fmt: skip
"""Name in RC1 -> name in TRL's logs. The values are means over TRL's passes and steps."""
_Played = dict[str, Any]
"""An episode as TRL's `rollout_func` returns it, and its `score`, which is None for a stand-in."""


class TrlGRPO(TrlEpisodeEngine):
    """The engine `trl_grpo`. It learns from groups of rollouts (strategy `groups`)."""

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        config = setup.config
        self._train_adapter(base, setup)
        update, grpo, section = config.training.update, config.training.grpo, config.training.trl_grpo
        self._group_size = update.group_size
        rows = rows_of_a_pass(
            config.batch_size // update.minibatches,
            update.micro_tokens // longest_dialogue(config.training, base.config),
        )
        self._settings = dict(
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=config.batch_size // update.minibatches // rows,
            steps_per_generation=config.batch_size // rows,
            num_iterations=update.epochs,
            num_train_epochs=1,
            num_generations=update.group_size,
            beta=config.kl_coef,
            epsilon=config.clip,
            epsilon_high=config.clip if grpo.clip_high is None else grpo.clip_high,
            entropy_coef=update.entropy_coef,
            scale_rewards=grpo.scale_rewards,
            loss_type=grpo.loss_type,
            importance_sampling_level=section.importance_sampling_level,
            use_bias_correction_kl=section.use_bias_correction_kl,
            max_completion_length=config.training.limits.tokens,  # `dr_grpo` divides by it
            temperature=config.training.rollout.temperature,
        )
        self._prompts = [{"prompt": str(group)} for group in range(config.prompts)]
        self._groups: list[list[_Played]] = []

    def _trainer(self, arguments: dict[str, Any], **over: Any) -> GRPOTrainer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # TRL warns that rollout_func is experimental
            return GRPOTrainer(
                args=GRPOConfig(**arguments | self._settings),
                train_dataset=Dataset.from_list(self._prompts),
                reward_funcs=rc1_reward,
                rollout_func=self._play_back,
                **over,
            )

    def _learn_with_trl(self, batch: EpisodeBatch) -> dict[str, float]:
        self._groups = groups_of(batch, len(self._prompts), self._group_size)
        learned = {"kl": 0.0} | self._train(self._prompts)  # TRL does not measure the KL if its coefficient is 0
        return {name: learned[theirs] for name, theirs in FIGURES.items()}

    def _play_back(self, prompts: Sequence[str], _: GRPOTrainer) -> dict[str, list[Any]]:
        """Return the step's episodes in the order in which TRL asks for their prompts: its `rollout_func`."""
        left = [iter(group) for group in self._groups]
        played = [next(left[int(prompt)]) for prompt in prompts]
        return {name: [one[name] for one in played] for name in played[0]}


def rc1_reward(score: Sequence[float | None], **_: Any) -> list[float | None]:
    """Return the scores that RC1 gave the episodes: TRL's reward function."""
    return list(score)


def groups_of(batch: EpisodeBatch, groups: int, size: int) -> list[list[_Played]]:
    """Group a step's episodes by prompt. A copy without a score replaces each episode that the judge left unscored.

    Args:
        batch: on any device.
        groups: prompts in a step.
        size: rollouts per prompt.
    """
    found: list[list[_Played]] = [[] for _ in range(groups)]
    for row, group in enumerate(batch.groups.tolist()):
        found[group].append(_played(batch, row))
    without_score = found[0][0] | {"score": None}
    for group in found:
        group += [without_score] * (size - len(group))
    return found


def _played(batch: EpisodeBatch, row: int) -> _Played:
    """Split an episode into its prompt, and the rest from the first action token on. Only action tokens are learned."""
    end = int(batch.lengths[row])
    begin = int(batch.action_mask[row].int().argmax())
    return {
        "prompt_ids": batch.ids[row, :begin].tolist(),
        "completion_ids": batch.ids[row, begin:end].tolist(),
        "logprobs": batch.old_logprobs[row, begin:end].tolist(),
        "env_mask": batch.action_mask[row, begin:end].int().tolist(),
        "score": float(batch.scores[row]),
    }
