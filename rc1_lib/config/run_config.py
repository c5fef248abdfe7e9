"""The configuration of a run: typed models of the YAML files in `configs/`.

The sections on data, scores and training are in `rc1_lib.config.data`, `rc1_lib.config.judge` and
`rc1_lib.config.training`, the thresholds in `rc1_lib.config.thresholds`. `rc1_lib.config.file` reads files and applies
overrides. Importing this module is fast.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config.data import Difficulty, Pool, ScaleUp, Shadow, Sources
from rc1_lib.config.engines import ENGINES, STRATEGIES, names_of, own_name
from rc1_lib.config.judge import TAKES_PATH, Ablation, Calibration, Judge, Overclarification, Reward
from rc1_lib.config.step_metrics import ANSWERED, SAME_ANSWER
from rc1_lib.config.thresholds import Gates
from rc1_lib.config.training import Training
from rc1_lib.config.values import BucketShares, Positive, Section, Seed, Share, TaskName, WrittenPath, sums_to_one
from rc1_lib.records import Task

LEAST_TRIED = 20
"""Fewest prompts, of every task and bucket, from which gate `learnability` concludes anything; one is a twentieth."""


def _in_the_mix(shares: dict[Task, float]) -> dict[Task, float]:
    return {task: share for task, share in shares.items() if share}


class Ticket(Section):
    """The ticket that opens training."""

    ttl_hours: Annotated[float, Field(gt=0, le=10 * 366 * 24)]
    """Hours from issue to expiry."""


class SeedRatio(Section):
    """One point of the seed-ratio schedule."""

    step: Annotated[int, Field(ge=0)]
    """The first step to which it applies."""
    ratio: Share
    """Minimum share of a step's rows drawn by passing over the pool in random order."""


class PrioritySampling(Section):
    """How training draws rows."""

    enable: bool
    """Whether rows are drawn by the shares below; otherwise by their natural shares."""
    by_difficulty: BucketShares
    """Share of each difficulty in a step; they sum to 1."""
    missing_share: Share | None
    """Share of rows with missing information in each bucket; null: their natural share."""
    low_perf_cap: Share
    """Maximum share of a step's rows that were not solved last time."""
    seed_ratio_schedule: tuple[SeedRatio, ...]


class Finetune(Section):
    """How the model is adapted."""

    method: str
    """`lora`, or `qlora` with the frozen base in 4 bits; one of `gates.training.methods`."""


class RunConfig(Section):
    """The configuration of one run. Training keys of the original scripts keep their names, at the top level."""

    profile: Literal["local", "prod"]
    """`local` is for trying things on one machine; `prod` has the published thresholds and allows a waiver only for
    people's labels."""
    simulate: bool
    """Must be false: the gate `training_config` rejects simulated scores."""
    live_mode: bool
    """Must be true; checked by the same gate."""
    base_model: str
    """A folder in the project or the workspace, or `NAME@COMMIT` on the Hugging Face hub."""
    datasets: Annotated[dict[TaskName, Share], AfterValidator(_in_the_mix)]
    """Share of each task in the pool; they sum to 1. A share of 0 takes a task out of the mix; a file that extends
    another needs it to leave out a task of that file."""
    seed_pool: str
    """The training rows; must be `difficulty.balanced_path`."""
    priority_sampling: PrioritySampling
    use_overclar_penalty: bool
    """Whether the over-clarification penalty is part of the training reward."""
    overclar: Overclarification
    difficulty_beta: Annotated[float, Field(ge=0)]
    """The factor on an episode's reward: 1 + beta for hard rows, 1 - beta for easy ones."""
    target_kl: Annotated[float, Field(gt=0)]
    """Target of `kl_coef`: the KL to the reference, in nats per token of the policy."""
    steps: Positive
    """Training steps; each samples `batch_size` episodes and updates the policy on them."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    """Training seeds; `rc1 train` uses the first, `--all-seeds` all of them."""
    lr: Annotated[float, Field(gt=0)]
    """Learning rate of the adapter; it falls linearly to 0 over `steps`."""
    clip: Annotated[float, Field(gt=0)]
    """PPO's clipping range of the ratio of new to old probability around 1."""
    kl_coef: Annotated[float, Field(ge=0)]
    """Initial coefficient of the KL penalty, per nat of KL to the reference. It adapts to reach `target_kl`; DPO keeps
    it, as its beta."""
    batch_size: Positive
    """Episodes per step."""
    rollout_len: Positive
    """Maximum tokens in one turn of the policy."""
    finetune: Finetune
    weights: WrittenPath
    """The file of the calibrated reward weights, written by a calibration that passed."""
    training: Training

    sources: Sources
    pool: Pool
    shadow: Shadow
    difficulty: Difficulty
    scale_up: ScaleUp
    judge: Judge
    reward: Reward
    calibration: Calibration
    ablation: Ablation
    gates: Gates
    ticket: Ticket

    @property
    def pays_judged_score(self) -> bool:
        """Whether training rewards the judged score; if not, the gates on that score do not apply."""
        return self.training.reward.judge > 0

    @property
    def why_not_judged(self) -> str:
        """Why the gates on the judged score do not apply; empty if they do."""
        if self.pays_judged_score:
            return ""
        stated = self.gates.not_applicable.get("verified_reward")
        why = "training rewards only the verified outcome, not the judged score (training.reward.judge is 0)"
        return f"{why} ({stated})" if stated else why

    @property
    def prompts(self) -> int:
        """Prompts per step: one for each episode, or for each group of episodes."""
        return self.batch_size // self.training.group_size

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.datasets, "datasets")
        sums_to_one(self.priority_sampling.by_difficulty, "priority_sampling.by_difficulty")
        self._check_data_sets()
        self._check_names()
        self._check_engine()
        self._check_minibatches()
        self._check_look()
        self._check_early_stop()
        self._check_waivers()
        self._check_reward_terms()
        if self.profile == "prod" and not (self.gates.git.require_commit and self.gates.git.require_clean):
            raise ValueError(
                "profile prod trains only committed code; set gates.git.require_commit and require_clean to true"
            )
        return self

    def _check_waivers(self) -> None:
        refused = sorted(set(self.gates.waivers) - {"judge_agreement"})
        if self.profile == "prod" and refused:
            raise ValueError(
                f"gates.waivers: found {', '.join(refused)}; profile prod allows a waiver only for judge_agreement, "
                f"until there are labels"
            )

    def _check_reward_terms(self) -> None:
        """Require a reward for the verified outcome in profile `prod`, and terms that agree with each other."""
        reward, stated = self.training.reward, "verified_reward" in self.gates.not_applicable
        unpriced = self.judge.provider != "rubric" and self.judge.prices.input is None
        if self.training.cap.usd is not None and self.training.pays_judge and unpriced:
            raise ValueError(
                f"training.cap.usd is {self.training.cap.usd:g}, but judge.prices are null, so no cost is known and "
                f"the cap would never be reached; set judge.prices, or training.cap.usd to null"
            )
        if not reward.success and not reward.judge:
            raise ValueError(
                "training.reward.success and training.reward.judge are both 0, so no answer earns anything; raise one "
                "of them"
            )
        if self.profile == "prod" and not reward.success:
            raise ValueError(
                "training.reward.success is 0, so verified answers earn nothing; raise it, since profile prod pays for "
                "the verified outcome"
            )
        most = self.training.limits.turns
        slow, solved = reward.turn * most, reward.success * (1 - self.difficulty_beta)
        if reward.success and solved <= 0:
            raise ValueError(
                f"difficulty_beta: found {self.difficulty_beta:g}, so a solved easy row earns {solved:g}; lower it "
                f"below 1 (0.05 to 0.1 is usual)"
            )
        if reward.success and slow >= solved:
            raise ValueError(
                f"training.reward.turn: {reward.turn:g} for each of training.limits.turns ({most}) is {slow:g}, but a "
                f"solved easy row earns {solved:g}, so a slow right answer would earn no more than doing nothing; "
                f"lower training.reward.turn below {solved / most:.4g}"
            )
        if self.pays_judged_score and stated:
            raise ValueError(
                f"gates.not_applicable lists verified_reward, but training.reward.judge is {reward.judge:g}, so "
                f"training rewards the judged score and the gates on it apply; set training.reward.judge to 0, or "
                f"remove verified_reward"
            )
        if self.profile == "prod" and not self.pays_judged_score and not stated:
            raise ValueError(
                "training.reward.judge is 0, so the gates on the judged score do not apply; profile prod requires a "
                "reason: gates.not_applicable: {verified_reward: REASON}"
            )

    def _check_data_sets(self) -> None:
        """Require a data set for every task of the mix."""
        unnamed = [task for task in self.datasets if task not in self.sources.hub]
        if self.sources.use == "hub" and unnamed:
            raise ValueError(
                f"sources.hub has no data set for {', '.join(unnamed)}, which `datasets` includes; name one"
            )

    def _check_names(self) -> None:
        """Require different file names, since manifests are named after a file without its folder and suffix."""
        written = {
            "pool.path": self.pool.path,
            "shadow.path": self.shadow.path,
            "difficulty.metrics_path": self.difficulty.metrics_path,
            "difficulty.balanced_path": self.difficulty.balanced_path,
            "the ablation's rollouts": TAKES_PATH,
        }
        taken: dict[str, str] = {}
        for key, path in written.items():
            other = taken.setdefault(PurePosixPath(path).stem.casefold(), key)
            if other != key:
                raise ValueError(f"{key} and {other} have the same file name, {path}; give each file a different name")

    def _check_minibatches(self) -> None:
        """Require an episode per minibatch, or training would end after its first rollout, and a step that learns."""
        minibatches, key = self.training.update.minibatches, "training.update.minibatches"
        if self.batch_size < minibatches:
            raise ValueError(
                f"batch_size is {self.batch_size}, expected at least {key} ({minibatches}), since each minibatch needs "
                f"an episode; raise batch_size or lower {key}"
            )
        warm_up, key = self.training.ppo.value_warm_up, "training.ppo.value_warm_up"
        if own_name(self.training.engine) == "torch_ppo" and warm_up >= self.steps:
            raise ValueError(
                f"{key} is {warm_up}, expected less than steps ({self.steps}), since only the value head learns in "
                f"these first steps; lower {key} or raise steps"
            )

    def _check_look(self) -> None:
        """Require enough prompts for a verdict; otherwise the error would come only after the warm start."""
        tried = self.training.learnability.at_start
        if 0 < tried < LEAST_TRIED:
            raise ValueError(
                f"training.learnability.at_start is {tried}, expected 0 or at least {LEAST_TRIED}, since fewer prompts "
                f"have no verdict; raise it"
            )

    def _check_early_stop(self) -> None:
        """Require enough answers for the share of the same answer to be measured."""
        metric = self.training.early_stop.metric
        if metric == SAME_ANSWER and self.batch_size < ANSWERED:
            raise ValueError(
                f"training.early_stop.metric is '{metric}', which needs at least {ANSWERED} answers, but batch_size is "
                f"{self.batch_size}, so it would never have a value; raise batch_size or name another metric"
            )

    def _check_engine(self) -> None:
        """Require an engine that supports the settings, and a strategy that provides its batches, in whole groups."""
        training = self.training
        engine = ENGINES[own_name(training.engine)]
        why = engine.refusal(training.adapter.targets, self.kl_coef)
        if why:
            raise ValueError(why)
        wanted, brought = engine.learns_from, STRATEGIES[training.strategy].learns_from
        if brought is not wanted:
            fitting = " or ".join(names_of(STRATEGIES, wanted))
            raise ValueError(
                f"training.strategy: found '{training.strategy}', which provides {brought}, but the engine "
                f"{training.engine} learns from {wanted}; use {fitting}"
            )
        if self.batch_size % training.group_size:
            raise ValueError(
                f"batch_size is {self.batch_size}, expected a multiple of training.update.group_size "
                f"({training.group_size}), the episodes of one prompt in a step"
            )
