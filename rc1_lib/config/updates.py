"""The sections of `training` on updates: common settings, settings of single engines, and learning rates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rc1_lib.config.values import NotNegative, Positive, Section, Share


class Steps(Section):
    """How a batch is split into optimizer steps, and these into forward passes."""

    epochs: Positive
    """Passes over a step's episodes or demonstrations."""
    minibatches: Positive
    """Updates per pass; each needs an episode or a demonstration."""
    micro_tokens: Positive
    """Padded tokens per forward pass; affects memory, time and the last bits of results."""
    max_grad_norm: Annotated[float, Field(gt=0)]
    """The gradient's norm is clipped to this value."""


class Update(Steps):
    """The update of every engine.

    All engines use the first four keys. Engines that learn from episodes use the others too, except TRL's: of these
    they use only `entropy_coef`, since their KL coefficient is constant and no KL ends their update. `group_size` is
    for engines that compare rollouts of the same prompt.
    """

    entropy_coef: NotNegative
    """Weight of the entropy bonus."""
    kl_stop: Annotated[float, Field(gt=0)]
    """The update ends when the mean KL per token to the policy before the update exceeds this value."""
    adaptive_kl: bool
    """Whether `kl_coef` adapts to reach `target_kl` (per token); otherwise it is constant."""
    kl_gain: Annotated[float, Field(gt=0, lt=1)]
    """How strongly a deviation from `target_kl`, clipped to 0.2 of it, changes `kl_coef`."""
    group_size: Annotated[int, Field(ge=2)]
    """Rollouts of each prompt in a step; `batch_size` must be a multiple of it."""


class PPO(Section):
    """Settings of `torch_ppo` in addition to `training.update`."""

    lam: Share
    """Lambda of generalised advantage estimation, per token of the policy."""
    value_lr: Annotated[float, Field(gt=0)]
    """Learning rate of the value head."""
    value_warm_up: Annotated[int, Field(ge=0)]
    """Number of first steps in which only the value head learns."""
    value_epochs: Annotated[int, Field(ge=0)]
    """Passes of only the value head over a step's episodes, after the update."""
    whiten: bool
    """Whether a step's advantages are normalised to mean 0 and deviation 1 over the policy's own tokens."""


class GRPO(Section):
    """Settings of `torch_grpo` in addition to `training.update`, named as in TRL's `GRPOConfig`."""

    scale_rewards: Literal["group", "batch", "none"]
    """What a rollout's score, minus its group's mean, is divided by: the group's deviation, the step's, or nothing."""
    loss_type: Literal["dapo", "grpo", "dr_grpo"]
    """Weight of a token: equal over the step, equal over its episode (so that long episodes do not count more), or
    divided by the maximum tokens of an episode (`training.limits.tokens`)."""
    clip_high: Annotated[float, Field(gt=0)] | None
    """Clipping range of the ratio above 1; null: the same as below, `clip`."""


class TrlDPO(Section):
    """Settings of `trl_dpo` (TRL's `DPOTrainer`) in addition to `training.update`; its beta is `kl_coef`."""

    loss_type: Literal["sigmoid", "hinge", "ipo", "apo_zero", "apo_down", "sigmoid_norm"]
    """TRL's name for the loss of a pair: `sigmoid` is DPO's own, `ipo` and `apo_*` are from their papers."""


class RateSchedule(Section):
    """The learning rates over a run, like the callback `lr_schedule` of the small supervised configuration."""

    kind: Literal["constant", "linear", "cosine"]
    """How they fall to 0 after the warm-up, if at all."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps over which they rise from 0; fewer than `steps`."""
