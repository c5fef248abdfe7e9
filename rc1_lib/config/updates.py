"""The sections of `training` on updates: common settings, and settings of single engines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rc1_lib.config.values import Positive, Section, Share


class Steps(Section):
    """How a batch is split into optimizer steps, and these into forward passes."""

    minibatches: Positive
    """Updates per step, in one pass over its episodes or demonstrations; each needs one of them."""
    micro_tokens: Positive
    """Padded tokens per forward pass; affects memory, time and the last bits of results."""
    max_grad_norm: Annotated[float, Field(gt=0)]
    """The gradient's norm is clipped to this value."""


class Update(Steps):
    """The update of every engine.

    All engines use the first three keys. Engines that learn from episodes use `kl_stop` too, except TRL's, whose update
    no KL ends. `group_size` is for engines that compare rollouts of the same prompt.
    """

    kl_stop: Annotated[float, Field(gt=0)]
    """The update ends when the mean KL per token to the policy before the update exceeds this value."""
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


class GRPO(Section):
    """The setting of `torch_grpo` in addition to `training.update`, named as in TRL's `GRPOConfig`."""

    scale_rewards: Literal["group", "batch", "none"]
    """What a rollout's score, minus its group's mean, is divided by: the group's deviation, the step's, or nothing."""
