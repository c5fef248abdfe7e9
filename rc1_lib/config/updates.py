"""The sections of `training` on updates: each engine's own, what they share, and the rates over a run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rc1_lib.config.values import NotNegative, Positive, Section, Share


class Steps(Section):
    """What the update of every engine of a run has."""

    epochs: Positive
    """Passes over a step's episodes, or demonstrations."""
    minibatches: Positive
    """Updates of one pass; each needs an episode, or a demonstration."""
    micro_tokens: Positive
    """Padded tokens of one forward pass: a matter of memory and time, and of the last bits alone."""
    max_grad_norm: Annotated[float, Field(gt=0)]
    """The gradient's norm is clipped to it."""


class SFT(Steps):
    """Supervised training on dialogues of the pool: for `pure_pt_sft` and `trl_sft` alone."""


class Update(Steps):
    """What the update of an engine has beside that whose loss is RC1's own."""

    entropy_coef: NotNegative
    """Weight of the entropy bonus."""
    kl_stop: Annotated[float, Field(gt=0)]
    """Mean KL per token between the policy before an update and now, beyond which the update ends."""
    adaptive_kl: bool
    """Whether `kl_coef` is moved towards `target_kl` (per token), or stays."""
    kl_gain: Annotated[float, Field(gt=0, lt=1)]
    """How strongly a deviation, of at most `kl_bound`, moves it."""
    kl_bound: Annotated[float, Field(gt=0, lt=1)]
    """The largest deviation from `target_kl` that counts, as a share of it."""


class PPO(Update):
    """PPO beside `lr`, `clip`, `kl_coef`, `target_kl`, `batch_size` and `rollout_len`."""

    gamma: Annotated[float, Field(gt=0, le=1)]
    """Discount per token of the policy."""
    lam: Share
    """Lambda of the generalised advantages, per token of the policy."""
    value_clip: Annotated[float, Field(gt=0)]
    """How far a value may go from the one before the update."""
    value_coef: NotNegative
    """Weight of the value loss."""
    value_lr: Annotated[float, Field(gt=0)]
    """Learning rate of the value head."""
    value_warm_up: Annotated[int, Field(ge=0)]
    """First steps in which the value head alone learns."""
    value_epochs: Annotated[int, Field(ge=0)]
    """Passes of the value head alone over a step's episodes, behind the update."""
    whiten: bool
    """Whether a step's advantages are brought to mean 0 and deviation 1 over the policy's own tokens."""


class Grouped(Section):
    """For an engine that compares takes of the same prompt."""

    group_size: Annotated[int, Field(ge=2)]
    """Takes of every prompt in a step; `batch_size` is a multiple of it."""


class GRPO(Grouped, Update):
    """GRPO beside `lr`, `clip`, `kl_coef`, `target_kl`, `batch_size` and `rollout_len`: for `torch_grpo` alone.

    The names and choices are those of TRL's `GRPOConfig`.
    """

    scale_rewards: Literal["group", "batch", "none"]
    """What a take's score above its group's mean is divided by: the group's deviation, that of the step, or nothing."""
    loss_type: Literal["dapo", "grpo", "dr_grpo"]
    """What a token counts: as much as any other of the step, a part of its episode (so that long ones count no more),
    or a share of the most tokens that an episode may have (`training.limits.tokens`)."""
    clip_high: Annotated[float, Field(gt=0)] | None
    """How far the ratio may go above 1; null: as far as below it, `clip`."""


class TrlGRPO(GRPO):
    """The same where the loss is that of TRL's `GRPOTrainer`: for `trl_grpo` alone."""

    importance_sampling_level: Literal["token", "sequence"]
    """What has a ratio of probabilities that is clipped: each token, or an episode's tokens together (GSPO)."""
    use_bias_correction_kl: bool
    """Whether the KL to the reference is weighed by that ratio, so that its gradient is that of the reverse KL."""


class DPO(Grouped, Update):
    """DPO on the best and the worst take of every prompt, for `torch_dpo` alone; its beta is `kl_coef`."""


class TrlDPO(Grouped, Steps):
    """The same on takes of the policy that training begins with, by TRL's `DPOTrainer`: for `trl_dpo` alone."""

    loss_type: Literal["sigmoid", "hinge", "ipo", "apo_zero", "apo_down", "sigmoid_norm"]
    """TRL's name of the loss of a pair: `sigmoid` is DPO's own, `ipo` and `apo_*` are those of their papers."""


class RateSchedule(Section):
    """The learning rates over the steps of a run, as the callback `lr_schedule` of the small configuration has it."""

    kind: Literal["constant", "linear", "cosine"]
    """How they fall to 0 behind the warm-up, if at all."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps over which they rise from 0; fewer than `steps`."""
