"""The sections of `training` on updates: each engine's settings, shared ones, and the learning rates over a run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rc1_lib.config.values import NotNegative, Positive, Section, Share


class Steps(Section):
    """Settings of every engine's update."""

    epochs: Positive
    """Passes over a step's episodes or demonstrations."""
    minibatches: Positive
    """Updates per pass; each needs an episode or a demonstration."""
    micro_tokens: Positive
    """Padded tokens per forward pass; affects memory, time and only the last bits of results."""
    max_grad_norm: Annotated[float, Field(gt=0)]
    """The gradient's norm is clipped to this value."""


class SFT(Steps):
    """Supervised training on dialogues of the pool: for `pure_pt_sft` and `trl_sft` only."""


class Update(Steps):
    """Further settings for engines with RC1's own loss."""

    entropy_coef: NotNegative
    """Weight of the entropy bonus."""
    kl_stop: Annotated[float, Field(gt=0)]
    """The update ends when the mean KL per token to the policy before it exceeds this value."""
    adaptive_kl: bool
    """Whether `kl_coef` adapts to reach `target_kl` (per token), or stays constant."""
    kl_gain: Annotated[float, Field(gt=0, lt=1)]
    """How strongly a deviation, of at most `kl_bound`, changes it."""
    kl_bound: Annotated[float, Field(gt=0, lt=1)]
    """The largest deviation from `target_kl` that counts, as a share of it."""


class PPO(Update):
    """PPO, in addition to `lr`, `clip`, `kl_coef`, `target_kl`, `batch_size` and `rollout_len`."""

    gamma: Annotated[float, Field(gt=0, le=1)]
    """Discount per token of the policy."""
    lam: Share
    """Lambda of generalised advantage estimation, per token of the policy."""
    value_clip: Annotated[float, Field(gt=0)]
    """Clipping range of a value around the one before the update."""
    value_coef: NotNegative
    """Weight of the value loss."""
    value_lr: Annotated[float, Field(gt=0)]
    """Learning rate of the value head."""
    value_warm_up: Annotated[int, Field(ge=0)]
    """First steps in which only the value head learns."""
    value_epochs: Annotated[int, Field(ge=0)]
    """Passes of only the value head over a step's episodes, after the update."""
    whiten: bool
    """Whether a step's advantages are normalised to mean 0 and deviation 1 over the policy's own tokens."""


class Grouped(Section):
    """For engines that compare rollouts of the same prompt."""

    group_size: Annotated[int, Field(ge=2)]
    """Rollouts of every prompt in a step; `batch_size` is a multiple of it."""


class GRPO(Grouped, Update):
    """GRPO, in addition to `lr`, `clip`, `kl_coef`, `target_kl`, `batch_size` and `rollout_len`: for `torch_grpo` only.

    The names and choices are those of TRL's `GRPOConfig`.
    """

    scale_rewards: Literal["group", "batch", "none"]
    """Divisor of a rollout's score above its group's mean: the group's deviation, the step's deviation, or none."""
    loss_type: Literal["dapo", "grpo", "dr_grpo"]
    """Weight of a token: equal over the step, equal over its episode (so that long episodes do not count more), or
    divided by the most tokens that an episode may have (`training.limits.tokens`)."""
    clip_high: Annotated[float, Field(gt=0)] | None
    """Clipping range of the ratio above 1; null: the same as below, `clip`."""


class TrlGRPO(GRPO):
    """The same with the loss of TRL's `GRPOTrainer`: for `trl_grpo` only."""

    importance_sampling_level: Literal["token", "sequence"]
    """Level of the clipped probability ratio: each token, or all tokens of an episode together (GSPO)."""
    use_bias_correction_kl: bool
    """Whether the KL to the reference is multiplied by that ratio, so that its gradient is that of the reverse KL."""


class DPO(Grouped, Update):
    """DPO on the best and the worst rollout of every prompt: for `torch_dpo` only; its beta is `kl_coef`."""


class TrlDPO(Grouped, Steps):
    """The same on rollouts of the initial policy, with TRL's `DPOTrainer`: for `trl_dpo` only."""

    loss_type: Literal["sigmoid", "hinge", "ipo", "apo_zero", "apo_down", "sigmoid_norm"]
    """TRL's name for the loss of a pair: `sigmoid` is DPO's own, `ipo` and `apo_*` are from their papers."""


class RateSchedule(Section):
    """The learning rates over a run, like the callback `lr_schedule` of the small supervised configuration."""

    kind: Literal["constant", "linear", "cosine"]
    """How they fall to 0 after the warm-up, if at all."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps over which they rise from 0; fewer than `steps`."""
