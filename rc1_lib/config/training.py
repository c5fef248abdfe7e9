"""The section `training` of a run's configuration: the policy and how it learns.

Its sections stand in `config_episodes`, `config_updates`, `config_course` and `config_evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config.curriculum import Cap, Checkpoints, Collapse, EarlyStopping, ShadowLook, Tracking
from rc1_lib.config.engines import ENGINES, OF_RUNS, OFFLINE, PLAYED, STRATEGIES, Learner, names_of, own_name
from rc1_lib.config.episodes import VLLM, EpisodeLimits, EpisodeReward, Parity, Rollout
from rc1_lib.config.evaluation import ControlSettings, HeldOut, LearnabilitySettings
from rc1_lib.config.step_metrics import HELD_OUT, JUDGED, unmeasured
from rc1_lib.config.updates import DPO, GRPO, PPO, SFT, Grouped, RateSchedule, Steps, TrlDPO, TrlGRPO
from rc1_lib.config.values import Positive, Section
from rc1_lib.records import Language


def _of_runs(learners: Mapping[str, Learner]) -> AfterValidator:
    """A check that a name is one of those that a run can be trained by."""

    def check(name: str) -> str:
        if learners is ENGINES and name in OFFLINE:
            raise ValueError(f"found '{name}', but {OFFLINE[name]}; take {' or '.join(names_of(learners, *OF_RUNS))}")
        if name not in (names := names_of(learners, *OF_RUNS)):
            raise ValueError(
                f"found '{name}', expected {' or '.join(names)}, since a run learns from episodes of its own or "
                f"from the pool's dialogues; for rows of input and output use `rc1 train --config "
                f"configs/train_local.yaml`"
            )
        return name

    return AfterValidator(check)


def _no_dropout(dropout: float) -> float:
    if dropout != 0:
        raise ValueError(
            f"found {dropout:g}, expected 0: nothing random may be active between sampling and update, so it would "
            f"have no effect; write 0.0"
        )
    return dropout


class WarmStart(Section):
    """Supervised training on the pool's demonstrations before PPO; its result is the pinned reference."""

    steps: Annotated[int, Field(ge=0)]
    """Optimizer steps; 0 takes the base model as it is."""
    batch_size: Positive
    """Demonstrations of one optimizer step."""
    lr: Annotated[float, Field(gt=0)]
    """Learning rate of the warm start."""


class AdapterSettings(Section):
    """The LoRA adapter."""

    rank: Positive
    """Rank of the adapter's matrices."""
    alpha: Positive
    """Scale of the adapter: its output counts alpha / rank."""
    dropout: Annotated[float, AfterValidator(_no_dropout)]
    """0: PPO compares what was sampled with what is learned, and dropout would make these two policies."""
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the linear layers that get an adapter; one that names no layer is refused."""


class Training(Section):
    """How the policy learns. The originals' keys stand at the top level; this is what they leave open."""

    engine: Annotated[str, _of_runs(ENGINES)]
    """What updates the policy: `torch_ppo` (`trl_ppo` is another name for it), `torch_grpo`, `trl_grpo`, `torch_dpo`,
    `trl_dpo`, `pure_pt_sft` or `trl_sft`."""
    strategy: Annotated[str, _of_runs(STRATEGIES)]
    """What the engine learns from: `ppo`, one episode of every prompt; `groups`, several of it (GRPO, DPO);
    `demonstrations`, the pool's own dialogues (the two of supervised training)."""
    threads: Positive
    """Of torch on a CPU. Sums round differently with another number, so it is part of every checkpoint."""
    shards: Positive
    """Parts that a step's episodes are dealt into, to be played and learned from one by one or at once. Their sums are
    put together in order, so the number decides the last bits of a result, and who works on which part does not."""
    processes: Positive | None
    """Processes that share the shards on a CPU, each with `threads` threads; null: as many as there are cores, at most
    one a shard. Under `accelerate launch` its processes share them. A matter of time, never of results."""
    languages: tuple[Language, ...]
    """The pool's rows in these languages are trained on; the others are counted."""
    max_tokens: Positive
    """Tokens of a row's demonstration, prompt included; longer rows are counted and left out."""
    describe_tools: bool
    """Whether the prompt describes the tools, for models that do not know them from their own training."""
    limits: EpisodeLimits
    reward: EpisodeReward
    warm_start: WarmStart
    adapter: AdapterSettings
    gradient_checkpointing: bool
    """Whether the states within a layer are computed again for the gradients: less memory for more time."""
    ppo: PPO
    grpo: GRPO
    trl_grpo: TrlGRPO
    dpo: DPO
    trl_dpo: TrlDPO
    sft: SFT
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
    """Steps of one task of the training flow."""
    tracking: Tracking

    @model_validator(mode="before")
    @classmethod
    def _without_callbacks(cls, section: Any) -> Any:
        """What the small configuration's list of callbacks names, a run has at places of its own, or has not."""
        if isinstance(section, Mapping) and "callbacks" in section:
            raise ValueError(
                "found the key 'callbacks', which configs/train_local.yaml has: a run logs and saves by itself "
                "(training.checkpoints), clips by max_grad_norm of its engine's section, and has training.lr_schedule, "
                "training.eval_shadow and training.early_stop; leave it out"
            )
        return section

    @model_validator(mode="after")
    def _names_who_samples(self) -> Self:
        if self.rollout.sampler == "vllm" and self.vllm.base_url is None:
            raise ValueError(
                "rollout.sampler is 'vllm', but vllm.base_url is null; give the server's address, such as "
                "http://127.0.0.1:8000/v1"
            )
        return self

    @model_validator(mode="after")
    def _check_a_good_one_stays(self) -> Self:
        """A collapse is seen some steps after it began, and there may be a checkpoint of each of these."""
        kept, patience = self.checkpoints.keep_last, self.collapse.patience
        if kept is not None and kept < patience:
            raise ValueError(
                f"checkpoints.keep_last is {kept}, expected at least collapse.patience ({patience}): a collapse is "
                f"named that many steps late, and no checkpoint from before it would be left"
            )
        return self

    @model_validator(mode="after")
    def _stops_by_what_is_measured(self) -> Self:
        metric = self.early_stop.metric
        if metric is None:
            return self
        judged = JUDGED if self.pays_judge else frozenset[str]()
        if why := unmeasured(metric, self.engine, self.strategy, judged):
            raise ValueError(f"early_stop.metric: {why}")
        if metric.startswith(HELD_OUT) and self.eval_shadow.every_steps is None:
            raise ValueError(
                f"early_stop.metric is '{metric}', which only a look at held-out rows measures; set "
                f"eval_shadow.every_steps too"
            )
        return self

    @property
    def plays(self) -> bool:
        """Whether a step's episodes are played by the policy; otherwise it learns from what others said."""
        return STRATEGIES[self.strategy].learns_from in PLAYED

    @property
    def pays_judge(self) -> bool:
        """Whether the judge's score counts in what is learned."""
        return self.plays and self.reward.judge > 0

    @property
    def update_key(self) -> str:
        """Where the settings of the engine's update stand."""
        return f"training.{ENGINES[own_name(self.engine)].update}"

    @property
    def update(self) -> Steps:
        """The settings of the engine's update."""
        section: Steps = getattr(self, ENGINES[own_name(self.engine)].update)
        return section

    @property
    def group_size(self) -> int:
        """Takes of every prompt in a step."""
        return self.update.group_size if isinstance(self.update, Grouped) else 1
