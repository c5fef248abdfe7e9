"""Thresholds of the gates that a specification names or a profile sets: the `gates:` section of a configuration.

They have no defaults, so that the file shows them. The others are constants next to the check that compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from rc1_lib.config.foreign_gates import sections
from rc1_lib.config.values import Positive, Reason, Round, Section, Share, Words, names_all, ordered


class SharedThresholds(Section):
    """What several gates share."""

    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples for an interval: fewer save time."""


class DiversityGate(Section):
    """Thresholds of the diversity gate."""

    min_distinct2: Share
    """Minimum distinct-2, as the mean over windows."""
    kl3_min: Annotated[float, Field(ge=0)]
    """Minimum 3-gram KL to the reference pack's wording of the same dialogues, in nats."""
    roles_min: Positive
    """Minimum number of roles."""
    styles_min: Positive
    """Minimum number of styles."""
    min_templates_per_kind: Positive
    """Minimum number of templates of each kind in use."""


class DuplicatesGate(Section):
    """Thresholds of the duplicate gate."""

    max_dup_pct: Annotated[float, Field(ge=0, le=100)]
    """Maximum share of rows, in per cent, that repeat an earlier one."""
    numbers: Literal["differ", "alike"]
    """What rows that differ only in numbers count as: `differ`, different rows; `alike`, copies."""


class LengthGate(Section):
    """Bounds on every row's length."""

    min_len: Positive
    """Minimum tokens of a dialogue."""
    max_len: Positive
    """Maximum tokens of a dialogue."""


class LeakageGate(Section):
    """Thresholds of the leak gate."""

    ngram: Annotated[Words, Field(ge=2)]
    """Words per n-gram."""
    max_similarity: Share
    """Maximum share of a shadow question's n-grams that may occur in one row."""


class MixGate(Section):
    """Tolerance of the task mix, in percentage points."""

    tolerance_pp: Annotated[float, Field(ge=0)]
    """Maximum deviation of a task's share from `datasets`."""


class DifficultyGate(Section):
    """Thresholds of the difficulty gate, on the balanced pool."""

    min_hard_pct: Share
    """Minimum share of hard rows."""
    max_hard_pct: Share
    """Maximum share of hard rows."""
    min_medium_pct: Share
    """Minimum share of medium rows."""
    max_medium_pct: Share
    """Maximum share of medium rows."""
    min_easy_pct: Share
    """Minimum share of easy rows."""
    max_easy_pct: Share
    """Maximum share of easy rows."""
    len_max: Positive
    """Maximum tokens of a row."""
    turns_max: Positive
    """Maximum turns of a row."""
    tool_hops_max: Positive
    """Maximum tool calls of a row."""
    easy_median_min: Share
    """Minimum median clue overlap of the easy rows."""
    hard_median_max: Share
    """Maximum median clue overlap of the hard rows."""
    clue_overlap_max_easy: Share
    """Maximum median clue overlap of the easy rows."""
    clue_overlap_min_hard: Share
    """Minimum median clue overlap of the hard rows."""


class WeightsGate(Section):
    """Bound on the reward weights."""

    max_weight: Share
    """Maximum weight of a dimension."""


class TrainingGate(Section):
    """Requirements on the training settings of this file."""

    min_steps: Positive
    """Minimum `steps`."""
    target_kl: Annotated[tuple[float, float], AfterValidator(ordered)]
    """Minimum and maximum `target_kl`."""
    min_seeds: Positive
    """Minimum number of `seeds`, and of trained ones in a release of profile `prod`."""
    methods: tuple[str, ...]
    """Allowed values of `finetune.method`."""


class ResourcesGate(Section):
    """Requirements on the machine."""

    min_free_gb: Annotated[float, Field(ge=0)]
    """Minimum free disk space for the workspace."""


class GitGate(Section):
    """Requirements on the git state."""

    require_commit: bool
    """Whether the code must be in a git commit."""
    require_clean: bool
    """Whether no file may differ from that commit."""


class ProbeGate(Section):
    """The judge probe."""

    n: Positive
    """Dialogues scored live."""
    require_billed: bool
    """Whether the calls must have been billed."""


class AntiSimulationGate(Section):
    """Thresholds of the anti-simulation gate (judge authenticity), over the latest scorings of the usage log."""

    last: Positive
    """How many scorings are checked, including replays from the cache."""
    min_billable: Positive
    """Minimum number of them that were billed."""
    cache_hit_lt: Annotated[dict[Round, Share], names_all(*get_args(Round))]
    """The share of replays must be below this, by round."""


class StabilityGate(Section):
    """Threshold of the stability gate, over the latest dialogues that the judge was asked about."""

    max_variance: Annotated[float, Field(gt=0)]
    """Variance between the K scores of a dimension above which a dialogue is unstable; also the maximum of the variance
    pooled over dialogues."""


class JudgeAgreementGate(Section):
    """Threshold of the judge's agreement with people, over this judge's labelled dialogues."""

    min_labels: Positive
    """Minimum number of dialogues with a person's label; with fewer, the judge is uncalibrated."""


class ShadowRunGate(Section):
    """Thresholds of the comparison of the baseline with the calibrated reward on the shadow set."""

    min_spearman: Annotated[float, Field(ge=-1, le=1)]
    """Minimum rank correlation of the baseline with the calibrated reward."""
    min_top10: Share
    """Minimum overlap of their top tenths."""
    min_improve_pct: float
    """By how many per cent the calibrated reward's correlation with success must exceed the baseline's."""


class CalibrationGate(Section):
    """Thresholds of the calibration, on held-out folds."""

    min_improve_pct: float
    """By how many per cent the median rank correlation must exceed that of the old weights."""
    min_mae_drop_pct: float
    """By how many per cent the mean absolute error must be below that of the old weights."""


class AblationGate(Section):
    """Thresholds of the ablation of the over-clarification penalty."""

    min_rate_drop_pct: float
    """By how many per cent the penalty must lower the over-clarification rate."""
    max_turns_up: float
    """By how many turns the mean may rise."""
    max_success_drop_pp: float
    """By how many percentage points success may fall."""


class RewardHackingGate(Section):
    """The reward-hacking evaluation: adversarial policies against the training reward."""

    prompts: Positive
    """Prompts of the shadow set that every policy plays; all if it has fewer."""
    own: tuple[str, ...]
    """Custom policies: Python files, each with a function `play(scene)`. A file of the workspace is run only if
    `--set` names it."""


class EvaluationGate(Section):
    """Thresholds of the evaluation of a trained policy against the initial one, on held-out prompts."""

    min_prompts: Positive
    """Minimum number of held-out prompts of each training seed, and of a control; with fewer, there is no verdict."""
    min_group: Positive
    """Minimum number of them that need asking, that are clear, and that are hard; each group decides a check."""
    min_needed_up_pp: float
    """By how many percentage points success must rise where asking is needed."""
    min_hard_up_pp: float
    """By how many percentage points success must rise on hard rows of multi-hop tasks (HotpotQA, StrategyQA)."""
    min_overclar_down_pct: float
    """By how many per cent the over-clarification rate must fall, relative to itself."""
    max_turns_up: float
    """By how many turns the mean may rise."""


class Gates(Section):
    """Thresholds of the gates, and the waivers. A gate of another package has a section of its own name."""

    model_config = ConfigDict(extra="allow")

    shared: SharedThresholds
    diversity: DiversityGate
    duplicates: DuplicatesGate
    length: LengthGate
    leakage: LeakageGate
    mix: MixGate
    difficulty: DifficultyGate
    weights: WeightsGate
    training: TrainingGate
    resources: ResourcesGate
    git: GitGate
    probe: ProbeGate
    stability: StabilityGate
    anti_simulation: AntiSimulationGate
    judge_agreement: JudgeAgreementGate
    shadow_run: ShadowRunGate
    calibration: CalibrationGate
    ablation: AblationGate
    reward_hacking: RewardHackingGate
    evaluation: EvaluationGate
    not_applicable: dict[Literal["verified_reward"], Reason]
    """`verified_reward` -> why training does not reward the judged score (`training.reward.judge: 0`), so that the
    gates on that score do not apply. Profile `prod` requires this reason."""
    waivers: dict[str, Reason]
    """Gate name -> why it is not enforced. Profile `prod` allows this only for `judge_agreement`."""

    @model_validator(mode="before")
    @classmethod
    def _read_foreign(cls, tree: Any) -> Any:
        """Read the sections of gates of other packages by their own models, and reject every other unknown key."""
        if not isinstance(tree, Mapping):
            return tree
        others = {key: value for key, value in tree.items() if key not in cls.model_fields}
        return {**tree, **dict(sections().model_validate(others))}
