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
    Learner,
    LearnsFrom,
    names_of,
    own_name,
)
from rc1_lib.config.episodes import VLLM, EpisodeLimits, EpisodeReward, Parity, Rollout
from rc1_lib.config.step_metrics import HELD_OUT, JUDGED, unmeasured
from rc1_lib.config.updates import GRPO, PPO, RateSchedule, TrlDPO, TrlGRPO, Update
from rc1_lib.config.values import Positive, Section, Seed
from rc1_lib.records import Language


def _registered(learners: Mapping[str, Learner]) -> AfterValidator:
    """A check that a name is one that can train a run."""

    def check(name: str) -> str:
        if learners is ENGINES and name in OFFLINE:
            raise ValueError(f"found '{name}', but {OFFLINE[name]}; use {' or '.join(names_of(learners))}")
        if name not in (names := names_of(learners)):
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
    micro_batch: Positive | None
    """Demonstrations per pass, for memory; null: all of a step at once."""
    lr: Annotated[float, Field(gt=0)]
    """Learning rate of this SFT."""


class AdapterSettings(Section):
    """The LoRA adapter."""

    rank: Positive
    """Rank of the adapter's matrices."""
    alpha: Positive
    """Scale of the adapter: its output is multiplied by alpha / rank."""
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the linear layers with an adapter; an unknown name is an error."""


class OnTheWay(Section):
    """Checkpoints between start and end that the evaluation compares too: judged score next to success."""

    checkpoints: Annotated[int, Field(ge=0)]
    """How many checkpoints, evenly spread over the ends of segments; 0: none."""
    prompts: Annotated[int, Field(ge=0)]
    """How many held-out prompts each of them answers."""


class HeldOut(Section):
    """The prompts of the evaluation, which training never sees."""

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of source questions held out."""
    prompts: Positive
    """How many of them are used, drawn by `priority_sampling.by_difficulty` as far as there are enough."""
    judged: Annotated[int, Field(ge=0)]
    """Prompts whose sampled episodes are judged too; the score is shown next to success. 0: no judge is asked."""
    between: OnTheWay
    seed: Seed
    """Seed of the draw of prompts, and of the episodes on them."""

    def judged_episodes(self, seeds: int) -> int:
        """How many episodes an evaluation of this many runs has judged, including checkpoints in between."""
        on_the_way = self.between.checkpoints * min(self.between.prompts, self.judged)
        return min(self.judged, self.prompts) * (1 + seeds) + on_the_way * seeds


class LearnabilitySettings(Section):
    """The rollouts of the initial policy before a training."""

    at_start: Annotated[int, Field(ge=0, strict=True)]
    """Prompts that a new training tries first, eight rollouts of each; it does not start if nothing can be learned
    (`gates.learnability`). 0: it starts without."""
    prompts: Positive
    """How many training rows `rc1 learnability` plays, from each task and bucket by its share, eight times each. No
    part of a ticket."""


class ControlSettings(Section):
    """A short training on a reward without information: `rc1 train --control`."""

    steps: Positive
    """Training steps of a control."""


class Training(Section):
    """How the policy learns. The originals' keys are at the top level; this section has all others."""

    engine: Annotated[str, _registered(ENGINES)]
    """The engine that updates the policy: `torch_ppo` (alias `trl_ppo`), `torch_grpo`, `trl_grpo`, `torch_dpo`,
    `trl_dpo`, `pure_pt_sft` or `trl_sft`."""
    strategy: Annotated[str, _registered(STRATEGIES)]
    """What the engine learns from: `ppo`, one episode of every prompt; `groups`, several of every prompt (GRPO, DPO);
    `demonstrations`, also called `sft`, the pool's own dialogues (the two supervised engines)."""
    threads: Positive
    """Threads of torch on a CPU. Sums round differently with another number, so every checkpoint records it."""
    shards: Positive
    """Shards of a step's episodes, processed one after another or in parallel. Their sums are added in order, so the
    number of shards decides the last bits of a result; which process works on which shard does not."""
    processes: Positive | None
    """Processes that share the shards on a CPU, each with `threads` threads; null: the number of cores, at most one per
    shard. Under `accelerate launch`, its processes share them. This changes the time, never the results."""
    precision: Literal["auto", "fp32", "bf16"]
    """What is computed in: fp32, bf16, or auto, which is bf16 on a GPU and on a CPU that multiplies it in hardware
    (AVX-512 BF16, AMX), else fp32. What is trained, and its optimizer, is fp32 in any case."""
    languages: tuple[Language, ...]
    """Training uses the pool's rows in these languages; other rows are only counted."""
    max_tokens: Positive
    """Most tokens of a row's demonstration, including the prompt; longer rows are counted and left out."""
    describe_tools: bool
    """Whether the prompt describes the tools, for models that were not trained with them: by the base's chat template
    where it teaches the calls that are read here, else by a text at the beginning of the system message."""
    enable_thinking: bool | None
    """Value of the chat template's variable `enable_thinking`, for bases that think before they answer; null leaves it
    to the template. A value that the template does not read is an error."""
    limits: EpisodeLimits
    reward: EpisodeReward
    warm_start: WarmStart
    adapter: AdapterSettings
    gradient_checkpointing: bool
    """Gradient checkpointing: recompute states within layers for the gradients; less memory, more time."""
    update: Update
    ppo: PPO
    grpo: GRPO
    trl_grpo: TrlGRPO
    trl_dpo: TrlDPO
    lr_schedule: RateSchedule
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
        """A run has other keys for the callbacks of the small supervised configuration."""
        if isinstance(section, Mapping) and "callbacks" in section:
            raise ValueError(
                "found the key 'callbacks', which belongs to configs/train_local.yaml: a run logs and saves by itself "
                "(training.checkpoints), clips by max_grad_norm in its engine's section, and has training.lr_schedule, "
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
        """A collapse is detected some steps after it began, and each of these steps may have a checkpoint."""
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
        """Whether the policy plays a step's episodes; otherwise it learns from given dialogues."""
        return STRATEGIES[self.strategy].learns_from in PLAYED

    @property
    def pays_judge(self) -> bool:
        """Whether the judge's score affects learning."""
        return self.plays and self.reward.judge > 0

    @property
    def group_size(self) -> int:
        """Rollouts of every prompt in a step."""
        if ENGINES[own_name(self.engine)].learns_from is not LearnsFrom.GROUPS:
            return 1
        return self.update.group_size
