"""The section `training` of a run's configuration: the policy and how it learns.

Most of its sections are in `rc1_lib.config.episodes`, `updates` and `curriculum`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config.curriculum import Cap, Checkpoints, Collapse, EarlyStopping, ShadowLook, Tracking
from rc1_lib.config.engines import (
    ENGINES,
    OFFLINE,
    PLAYED,
    STRATEGIES,
    LearnsFrom,
    Spec,
    names_of,
    own_name,
)
from rc1_lib.config.episodes import VLLM, EpisodeLimits, EpisodeReward, Parity, Rollout
from rc1_lib.config.step_metrics import HELD_OUT, JUDGED, unmeasured
from rc1_lib.config.updates import GRPO, PPO, Update
from rc1_lib.config.values import Positive, Section
from rc1_lib.records import Language


def _registered(registry: Mapping[str, Spec]) -> AfterValidator:
    """Return a validator for names that can train a run."""

    def check(name: str) -> str:
        if registry is ENGINES and name in OFFLINE:
            raise ValueError(f"found '{name}', but {OFFLINE[name]}; use {' or '.join(names_of(registry))}")
        if name not in (names := names_of(registry)):
            raise ValueError(
                f"found '{name}', expected {' or '.join(names)}, since a run learns from its own episodes or "
                f"from the pool's dialogues; for rows of input and output use `rc1 train --config "
                f"configs/train_local.yaml`"
            )
        return name

    return AfterValidator(check)


class WarmStart(Section):
    """SFT on the pool's demonstrations before PPO (warm start); its result is the initial policy and the reference."""

    steps: Annotated[int, Field(ge=0)]
    """Optimizer steps; 0 uses the base model unchanged."""
    batch_size: Positive
    """Demonstrations per optimizer step."""
    micro_tokens: Positive | None
    """Tokens per forward pass, padding included, which limits memory; null: all of a step at once."""
    lr: Annotated[float, Field(gt=0)]
    """Learning rate of this SFT."""
    precision: Literal["auto", "bf16", "fp32"] | None
    """Number format of its forward passes, on fp32 weights; null: that of `training.precision`."""


class AdapterSettings(Section):
    """The LoRA adapter."""

    rank: Positive
    """Rank of the adapter's matrices; its output is multiplied by 2."""
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the linear layers with an adapter; an unknown name is an error."""


HELD_OUT_SEED = 20250821
"""Of the draw of prompts to evaluate, and of the episodes on them: the same prompts for every seed of training."""


class HeldOut(Section):
    """The prompts of the evaluation, which training never sees."""

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of source questions held out."""
    prompts: Positive
    """Number of prompts to play, drawn by `priority_sampling.by_difficulty` as far as there are enough, in each
    difficulty equally many of every task."""
    judged: Annotated[int, Field(ge=0)]
    """Prompts whose sampled episodes are judged too; the score is shown next to success. If training pays that score,
    fewer than 200, or than `gates.evaluation.min_prompts`, are refused."""

    def judged_episodes(self, seeds: int) -> int:
        """Return how many episodes an evaluation of `seeds` runs has judged."""
        return min(self.judged, self.prompts) * (1 + seeds)


class LearnabilitySettings(Section):
    """The rollouts of the initial policy before a training."""

    at_start: Annotated[int, Field(ge=0, strict=True)]
    """Prompts that a new training tries first, with eight rollouts each; it does not start if nothing can be learned
    (gate `learnability`). 0: it starts without this check."""


class ControlSettings(Section):
    """A short training on an uninformative reward: `rc1 train --control`."""

    steps: Positive
    """Training steps of a control."""


class Training(Section):
    """How the policy learns. Keys of the original scripts are at the top level; this section has all others."""

    engine: Annotated[str, _registered(ENGINES)]
    """The engine that updates the policy: `torch_ppo` (alias `trl_ppo`), `torch_grpo`, `trl_dpo` or
    `pure_pt_sft`."""
    strategy: Annotated[str, _registered(STRATEGIES)]
    """What the engine learns from: `ppo`, one episode of each prompt; `groups`, several of each prompt (GRPO, DPO);
    `demonstrations`, also called `sft`, the pool's own dialogues (`pure_pt_sft`)."""
    threads: Positive
    """Threads of torch on a CPU. The number affects the rounding of sums, so every checkpoint records it."""
    shards: Positive
    """Shards of a step's episodes, processed one after another or in parallel. Their sums are added in order, so the
    last bits of a result depend on the number of shards, but not on which process works on which shard."""
    processes: Positive | None
    """Processes that share the shards on a CPU, each with `threads` threads; null: the number of cores, at most one per
    shard. Under `accelerate launch`, its processes share them. This changes the time, never the results."""
    precision: Literal["auto", "fp32", "bf16"]
    """Precision of computations: fp32, bf16, or auto, which is bf16 on a GPU and on a CPU with hardware support for it
    (AVX-512 BF16, AMX), otherwise fp32. Trained weights and the optimizer are always fp32."""
    languages: tuple[Language, ...]
    """Training uses the pool's rows in these languages; other rows are only counted."""
    max_tokens: Positive
    """Maximum tokens of a row's demonstration, including the prompt; longer rows are counted and left out."""
    describe_tools: bool
    """Whether the prompt describes the tools, for models that were not trained with them. The base's chat template does
    it if it teaches the format of calls that RC1 parses; otherwise a text is put before the system message."""
    enable_thinking: bool | None
    """Value of the chat template's variable `enable_thinking`, for bases that think before they answer; null: the
    template's default. If the template does not use the variable, a value is an error."""
    limits: EpisodeLimits
    reward: EpisodeReward
    warm_start: WarmStart
    adapter: AdapterSettings
    gradient_checkpointing: bool
    """Gradient checkpointing: recompute activations in the backward pass, which takes less memory and more time."""
    update: Update
    ppo: PPO
    grpo: GRPO
    rollout: Rollout
    vllm: VLLM
    parity: Parity
    checkpoints: Checkpoints
    cap: Cap
    collapse: Collapse
    learnability: LearnabilitySettings
    held_out: HeldOut
    eval_shadow: ShadowLook
    early_stop: EarlyStopping
    control: ControlSettings
    segment_steps: Positive
    """Steps per task of the training flow."""
    tracking: Tracking

    @model_validator(mode="before")
    @classmethod
    def _without_callbacks(cls, section: Any) -> Any:
        """Reject callbacks of the small supervised configuration, for which a run has other keys."""
        if isinstance(section, Mapping) and "callbacks" in section:
            raise ValueError(
                "found the key 'callbacks', which belongs to configs/train_local.yaml: a run logs and saves by itself "
                "(training.checkpoints), clips by training.update.max_grad_norm, lets its rates fall linearly, and has "
                "training.eval_shadow and training.early_stop; remove the key"
            )
        return section

    @model_validator(mode="after")
    def _check_sampler(self) -> Self:
        if self.rollout.sampler == "vllm" and self.vllm.base_url is None:
            raise ValueError(
                "rollout.sampler is 'vllm', but vllm.base_url is null; set the server's address, such as "
                "http://127.0.0.1:8000/v1"
            )
        return self

    @model_validator(mode="after")
    def _check_keep_last(self) -> Self:
        """Require a checkpoint from before a collapse, which is detected some steps after it began."""
        kept, patience = self.checkpoints.keep_last, self.collapse.patience
        if kept is not None and kept <= patience:
            raise ValueError(
                f"checkpoints.keep_last is {kept}, expected more than collapse.patience ({patience}): a collapse is "
                f"detected that many steps late, and no checkpoint from before it would be left"
            )
        return self

    @model_validator(mode="after")
    def _check_early_stop_metric(self) -> Self:
        metric = self.early_stop.metric
        if metric is None:
            return self
        judged = JUDGED if self.pays_judge else frozenset[str]()
        if why := unmeasured(metric, self.engine, self.strategy, judged):
            raise ValueError(f"early_stop.metric: {why}")
        if metric.startswith(HELD_OUT) and self.eval_shadow.every_steps is None:
            raise ValueError(
                f"early_stop.metric is '{metric}', which is only measured on held-out rows; set "
                f"eval_shadow.every_steps too"
            )
        return self

    @property
    def plays(self) -> bool:
        """Whether the policy plays a step's episodes; otherwise it learns from existing dialogues."""
        return STRATEGIES[self.strategy].learns_from in PLAYED

    @property
    def pays_judge(self) -> bool:
        """Whether the judge's score affects learning."""
        return self.plays and self.reward.judge > 0

    @property
    def group_size(self) -> int:
        """Rollouts of each prompt in a step."""
        if ENGINES[own_name(self.engine)].learns_from is not LearnsFrom.GROUPS:
            return 1
        return self.update.group_size
