"""The configuration of a run: typed models of the YAML files in `configs/`.

Thresholds stand in `rc1_lib.thresholds`. This module imports nothing heavy. Reading and overriding lives in
`rc1_lib.config_file`.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config_training import Training
from rc1_lib.config_values import (
    BucketShares,
    Positive,
    Range,
    Section,
    Seed,
    Share,
    TaskName,
    WrittenPath,
    names_all,
    ordered,
    sums_to_one,
)
from rc1_lib.records import BUCKETS, Bucket, Rule
from rc1_lib.thresholds import Gates


class Sources(Section):
    """Where questions come from: `embedded`, `hub`, or a folder with a sub-folder of the public files for each task."""

    use: str
    hub: dict[TaskName, str]
    """Task -> hub name of its data set, read through Hugging Face `datasets`."""
    chinese_share: Share
    """Share of embedded questions written in Chinese."""
    max_uses: Positive
    """How often one question may stand in the pool; a second use is posed differently and is counted in the report."""


class Teacher(Section):
    """Habits of the scripted teacher that writes the demonstrations."""

    cue_rate: Share
    """Share of prompts worded vaguely, whether or not anything is missing: the misleading cue."""
    cue_pull: Annotated[float, Field(ge=1.0)]
    """How many times likelier the teacher is to ask when the prompt is vague."""
    need_pull: Annotated[float, Field(ge=1.0)]
    """How many times likelier it is to ask when something is missing; at 1 it does not notice."""
    skip_tool_rate: Share
    repeat_tool_rate: Share


class Recipe(Section):
    """How prompts of one intended difficulty are posed."""

    withhold: Share
    """Share of these rows with a slot taken out."""
    detours: Range
    """Fewest and most pages beside the needed ones that the teacher reads."""
    distractors: Range
    """Fewest and most pages beside the needed ones that the prompt lists."""
    evidence: Literal["complete", "partial"]
    """Whether the prompt quotes all supporting sentences, or only their beginnings, so that pages have to be read."""
    overlap: Share
    """Clue overlap aimed at: quotes are cut, or diluted by sentences from other pages, to come near it."""


class Pool(Section):
    """The seed pool."""

    path: WrittenPath
    n: Annotated[int, Field(gt=0, le=1_000_000)]
    seed: Seed
    max_turns: Annotated[int, Field(ge=2)]
    max_tool_hops: Positive
    """Most calls of wiki and calc in one dialogue; the teacher leaves needless ones out rather than exceed it."""
    clarify_rate: Share
    """Share of dialogues in which the teacher asks the user something."""
    tools: tuple[Literal["wiki", "calc"], ...]
    templates_dir: str
    reference_templates_dir: str
    teacher: Teacher
    intended: BucketShares
    """Shares of rows posed with each recipe; the difficulty that is reached is measured afterwards."""
    recipes: Annotated[dict[Bucket, Recipe], names_all(*BUCKETS)]
    workers: Annotated[int, Field(ge=1, le=256)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.intended, "pool.intended")
        return self


class Shadow(Section):
    """The held-out shadow set."""

    path: WrittenPath
    n: Annotated[int, Field(gt=0, le=20_000)]
    seed: Seed
    stratify: bool


class Bounds(Section):
    """Where a feature stops being easy and starts being hard; `rising` features are harder when larger."""

    easy: float
    hard: float


class Difficulty(Section):
    """Difficulty measures, buckets and balance."""

    metrics_path: WrittenPath
    balanced_path: WrittenPath
    target: BucketShares
    bounds: dict[str, Bounds]
    clarification_hard_turns: Positive

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.target, "difficulty.target")
        wanted = {
            "len_tokens", "turns", "tool_hops", "ops_numeric", "entities", "connector_density", "clue_overlap",
        }  # fmt: skip
        if set(self.bounds) != wanted:
            raise ValueError(f"difficulty.bounds must name exactly {', '.join(sorted(wanted))}")
        return self


class Ticket(Section):
    """The ticket that opens training."""

    ttl_hours: Annotated[float, Field(gt=0, le=10 * 366 * 24)]


class JudgeSampling(Section):
    """How the judge's replies are drawn."""

    temperature: Annotated[float, Field(ge=0, le=2)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    max_tokens: Positive


class ScoreStore(Section):
    """Where replies and the usage log are kept, and for how long a score counts."""

    path: WrittenPath
    ttl_days: Annotated[float, Field(gt=0)]
    model_check_hours: Annotated[float, Field(ge=0)]
    """Stored scores are used only when the provider was seen to answer with the same model version this recently."""


class JudgeLimits(Section):
    """How hard the provider is asked, and for how long."""

    rps: Annotated[float, Field(gt=0)]
    """Requests per second at the start; the rate adapts to what the provider takes."""
    max_rps: Annotated[float, Field(gt=0)]
    concurrency: Annotated[tuple[Positive, Positive], AfterValidator(ordered)]
    attempts: Positive
    timeout_s: Annotated[float, Field(gt=0)]
    deadline_s: Annotated[float, Field(gt=0)]
    max_wait_s: Annotated[float, Field(gt=0)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rps > self.max_rps:
            raise ValueError(f"judge.limits.rps ({self.rps:g}) is above max_rps ({self.max_rps:g})")
        return self


class Prices(Section):
    """What a million tokens cost, in USD."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class Budget(Section):
    """What one run of the judge may spend; None sets no bound."""

    max_usd: Annotated[float, Field(gt=0)] | None
    max_calls: Positive | None


class Judge(Section):
    """The judge that scores dialogues. Keys come from the environment, never from here."""

    provider: str
    spec: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Version of the judge's instructions, the name of a file in `configs/judge`; a change invalidates cache and
    ticket."""
    model: str | None
    base_url: str | None
    structured: bool
    samples: Annotated[int, Field(ge=1, le=100)]
    sampling: JudgeSampling
    verdict_at: Share
    store: ScoreStore
    limits: JudgeLimits
    prices: Prices
    budget: Budget


class Reward(Section):
    """The old score, and what the new reward is made of."""

    old_weights: dict[str, Share]
    """The old score's fixed weights over the judge's seven dimensions: the prior of the calibration."""
    rules: tuple[Rule, ...]
    """Rule dimensions that the new reward may weigh beside the judge's."""
    unstable_weight: Share
    """How much a dialogue counts on whose scores the judge's samples disagree; an unscored one holds no number."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.old_weights, "reward.old_weights")
        both = set(self.old_weights) & set(self.rules)
        if both:
            raise ValueError(f"reward.rules and reward.old_weights both name {', '.join(sorted(both))}")
        return self


class Calibration(Section):
    """How the weights of the new reward are found."""

    n: Positive
    """Dialogues of the balanced pool that are judged for it; the shadow set stays unseen."""
    cv: Annotated[int, Field(ge=2, le=50)]
    """Folds of the cross-validation; dialogues about one source question stay in one fold."""
    boot: Annotated[int, Field(ge=20, le=100_000)]
    """Bootstrap samples of source questions."""
    l2: Annotated[float, Field(ge=0, le=1e6)]
    """Pull towards the old weights: l2 * ||w - w_old||² beside the mean squared error."""
    seed: Seed


class Ablation(Section):
    """The ablation of the over-clarification penalty."""

    takes_path: WrittenPath
    """Several dialogues about each prompt of the shadow set, by the same teacher."""
    takes: Annotated[int, Field(ge=2, le=64)]
    """How many of each."""


class Overclarification(Section):
    """The over-clarification penalty: alpha * min(c, cap)."""

    alpha: Annotated[float, Field(ge=0)]
    cap: Positive


class SeedRatio(Section):
    """One point of the seed-ratio schedule."""

    step: Annotated[int, Field(ge=0)]
    ratio: Share


class PrioritySampling(Section):
    """How training draws rows."""

    enable: bool
    by_difficulty: BucketShares
    missing_share: Share | None
    """Share of the rows of each bucket where something is missing; null takes them as they come."""
    low_perf_cap: Share
    seed_ratio_schedule: tuple[SeedRatio, ...]


class Finetune(Section):
    """How the model is adapted."""

    method: str


class RunConfig(Section):
    """One file, one run. The training keys keep the originals' names at the top level."""

    profile: Literal["local", "prod"]
    simulate: bool
    live_mode: bool
    base_model: str
    datasets: dict[TaskName, Share]
    seed_pool: str
    priority_sampling: PrioritySampling
    use_overclar_penalty: bool
    overclar: Overclarification
    difficulty_beta: Annotated[float, Field(ge=0)]
    target_kl: float
    steps: Positive
    seeds: tuple[Seed, ...]
    lr: Annotated[float, Field(gt=0)]
    clip: Annotated[float, Field(gt=0)]
    kl_coef: Annotated[float, Field(ge=0)]
    batch_size: Positive
    rollout_len: Positive
    finetune: Finetune
    weights: WrittenPath
    training: Training

    sources: Sources
    pool: Pool
    shadow: Shadow
    difficulty: Difficulty
    judge: Judge
    reward: Reward
    calibration: Calibration
    ablation: Ablation
    gates: Gates
    ticket: Ticket

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.datasets, "datasets")
        sums_to_one(self.priority_sampling.by_difficulty, "priority_sampling.by_difficulty")
        self._check_hub()
        self._check_names()
        self._check_minibatches()
        self._check_stores()
        if self.profile == "prod" and self.gates.waivers:
            raise ValueError(f"profile prod allows no waivers, found {', '.join(sorted(self.gates.waivers))}")
        if self.profile == "prod" and not (self.gates.git.require_commit and self.gates.git.require_clean):
            raise ValueError("profile prod trains committed code only: gates.git must require_commit and require_clean")
        return self

    def _check_hub(self) -> None:
        """Every task of the mix is read by a name."""
        unnamed = [task for task in self.datasets if task not in self.sources.hub]
        if self.sources.use == "hub" and unnamed:
            raise ValueError(f"sources.hub names no data set for {', '.join(unnamed)}, which the mix holds; name one")

    def _check_names(self) -> None:
        """Manifests and checksums are named by their file's name without folder and suffix."""
        written = {
            "pool.path": self.pool.path,
            "shadow.path": self.shadow.path,
            "difficulty.metrics_path": self.difficulty.metrics_path,
            "difficulty.balanced_path": self.difficulty.balanced_path,
            "ablation.takes_path": self.ablation.takes_path,
        }
        taken: dict[str, str] = {}
        for key, path in written.items():
            other = taken.setdefault(PurePosixPath(path).stem.casefold(), key)
            if other != key:
                raise ValueError(f"{key} and {other} have the same file name, {path}; give each file a name of its own")

    def _check_stores(self) -> None:
        """What gates read of the judge has to be the preflight's own."""
        if PurePosixPath(self.judge.store.path).is_relative_to(PurePosixPath(self.training.reward.scores)):
            raise ValueError(
                f"judge.store.path is {self.judge.store.path}, below training.reward.scores "
                f"({self.training.reward.scores}), where training keeps the replies to its own episodes; give it "
                f"another folder"
            )

    def _check_minibatches(self) -> None:
        """A minibatch without an episode would end training after the first rollout."""
        minibatches = self.training.ppo.minibatches
        if self.batch_size < minibatches:
            raise ValueError(
                f"batch_size is {self.batch_size}, expected at least training.ppo.minibatches ({minibatches}), each of "
                f"which needs an episode; raise batch_size or lower training.ppo.minibatches"
            )
