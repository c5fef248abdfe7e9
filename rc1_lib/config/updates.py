"""The sections of `training` on updates: what all engines share, what is an engine's own, and the learning rates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rc1_lib.config.values import NotNegative, Positive, Section, Share


class Steps(Section):
    """What is given at once, cut into steps of the optimizer and these into forward passes."""

    epochs: Positive
    """Passes over a step's episodes or demonstrations."""
    minibatches: Positive
    """Updates per pass; each needs an episode or a demonstration."""
    micro_tokens: Positive
    """Padded tokens per forward pass; affects memory, time and only the last bits of results."""
    max_grad_norm: Annotated[float, Field(gt=0)]
    """The gradient's norm is clipped to this value."""


class Update(Steps):
    """The update of every engine.

    All engines use the first four keys, those that learn from episodes the others too. Of these TRL's use
    `entropy_coef` alone: their KL coefficient stays, and no KL ends their update. `group_size` is for the engines that
    compare rollouts of the same prompt.
    """

    entropy_coef: NotNegative
    """Weight of the entropy bonus."""
    kl_stop: Annotated[float, Field(gt=0)]
    """The update ends when the mean KL per token to the policy before it exceeds this value."""
    adaptive_kl: bool
    """Whether `kl_coef` adapts to reach `target_kl` (per token), or stays constant."""
    kl_gain: Annotated[float, Field(gt=0, lt=1)]
    """How strongly a deviation, of at most 0.2 of `target_kl`, changes it."""
    group_size: Annotated[int, Field(ge=2)]
    """Rollouts of every prompt in a step; `batch_size` is a multiple of it."""


class PPO(Section):
    """What `torch_ppo` needs besides `training.update`."""

    lam: Share
    """Lambda of generalised advantage estimation, per token of the policy."""
    value_lr: Annotated[float, Field(gt=0)]
    """Learning rate of the value head."""
    value_warm_up: Annotated[int, Field(ge=0)]
    """First steps in which only the value head learns."""
    value_epochs: Annotated[int, Field(ge=0)]
    """Passes of only the value head over a step's episodes, after the update."""
    whiten: bool
    """Whether a step's advantages are normalised to mean 0 and deviation 1 over the policy's own tokens."""


class GRPO(Section):
    """What `torch_grpo` and `trl_grpo` need besides `training.update`, named as in TRL's `GRPOConfig`."""

    scale_rewards: Literal["group", "batch", "none"]
    """Divisor of a rollout's score above its group's mean: the group's deviation, the step's deviation, or none."""
    loss_type: Literal["dapo", "grpo", "dr_grpo"]
    """Weight of a token: equal over the step, equal over its episode (so that long episodes do not count more), or
    divided by the most tokens that an episode may have (`training.limits.tokens`)."""
    clip_high: Annotated[float, Field(gt=0)] | None
    """Clipping range of the ratio above 1; null: the same as below, `clip`."""


class TrlGRPO(Section):
    """What TRL's `GRPOTrainer` needs besides `training.update` and `training.grpo`: for `trl_grpo` only."""

    importance_sampling_level: Literal["token", "sequence"]
    """Level of the clipped probability ratio: each token, or all tokens of an episode together (GSPO)."""
    use_bias_correction_kl: bool
    """Whether the KL to the reference is multiplied by that ratio, so that its gradient is that of the reverse KL."""


class TrlDPO(Section):
    """What TRL's `DPOTrainer` needs besides `training.update`: for `trl_dpo` only; its beta is `kl_coef`."""

    loss_type: Literal["sigmoid", "hinge", "ipo", "apo_zero", "apo_down", "sigmoid_norm"]
    """TRL's name for the loss of a pair: `sigmoid` is DPO's own, `ipo` and `apo_*` are from their papers."""


class RateSchedule(Section):
    """The learning rates over a run, like the callback `lr_schedule` of the small supervised configuration."""

    kind: Literal["constant", "linear", "cosine"]
    """How they fall to 0 after the warm-up, if at all."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps over which they rise from 0; fewer than `steps`."""
