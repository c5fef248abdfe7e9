"""Thresholds of the gates that a specification names or a profile sets: the `gates:` section of a configuration.

They have no defaults, so that the file shows them. The others are constants next to the check that compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from rc1_lib.config.foreign_gates import sections
from rc1_lib.config.values import NotNegative, Positive, Reason, Round, Section, Share, Words, names_all, ordered


class SharedThresholds(Section):
    """Thresholds that several gates share."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Confidence level of all intervals."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples for an interval."""
    min_coverage: Share
    """Minimum share of dialogues or episodes that the judge must have scored, wherever scores decide something."""
    min_outcomes: Positive
    """Minimum number of solved and of unsolved dialogues, or of good and of bad ones by people's labels; with fewer, a
    correlation with them is meaningless."""
    enough_auc: Share
    """If the baseline reward ranks a success above a failure in at least this share of pairs, and so does the
    calibrated one (lower end of its interval), no gain is required, since hardly any is possible."""
    max_loss_pct: NotNegative
    """By how many per cent the rank correlation with success may then be below the baseline reward's."""
    corr_floor: Annotated[float, Field(gt=0, le=1)]
    """Improvements are relative to the baseline reward's correlation, or to this value if that is smaller."""


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
    """Bounds on the reward weights."""

    max_weight: Share
    """Maximum weight of a criterion."""
    sum_tolerance: Annotated[float, Field(gt=0)]
    """Maximum deviation of the sum of the weights from 1."""


class TrainingGate(Section):
    """Requirements on the training settings of this file."""

    min_steps: Positive
    """Minimum `steps`."""
    target_kl: Annotated[tuple[float, float], AfterValidator(ordered)]
    """Minimum and maximum `target_kl`."""
    min_seeds: Positive
    """Minimum number of `seeds`."""
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
    min_latency_spread: Annotated[float, Field(gt=0)]
    """Minimum ratio of standard deviation to mean of the live latencies, which no network keeps constant."""
    max_identical: Share
    """Maximum share of dialogues whose K replies at a temperature above 0 are identical."""
    max_age_hours: Annotated[float, Field(gt=0)]
    """Maximum age in hours of a live scoring that still counts as evidence."""


class StabilityGate(Section):
    """Thresholds of the stability gate, over the latest dialogues that the judge was asked about."""

    last: Positive
    """How many dialogues are checked."""
    max_variance: Annotated[float, Field(gt=0)]
    """Variance between the K scores of a criterion above which a dialogue is unstable; also the maximum of the variance
    pooled over dialogues."""
    max_unstable: Share
    """Maximum share of unstable dialogues."""
    max_models: Positive
    """Maximum number of model versions that may have answered."""


class DriftGate(Section):
    """Thresholds of the nightly comparison of the judge with its first scores."""

    min_coverage: Share
    """Minimum share of the fixed set that must be scored again."""
    min_dialogues: Positive
    """Minimum number of dialogues to compare; with fewer, no baseline is recorded either."""
    max_shift: Annotated[float, Field(gt=0, lt=1)]
    """By how much the medians of a criterion may move in the mean, up or down."""


class JudgeAgreementGate(Section):
    """Thresholds of the judge's agreement with people, over this judge's labelled dialogues."""

    min_labels: Positive
    """Minimum number of dialogues with a person's label; with fewer, the judge is uncalibrated."""
    min_kappa: Annotated[float, Field(ge=-1, le=1)]
    """Minimum kappa of the judge's verdicts with people's labels."""
    max_likeness: Share
    """Maximum share of dialogues with the judge's own verdict: annotators who never differ from it have copied it."""


class ShadowRunGate(Section):
    """Thresholds of the comparison of the baseline with the calibrated reward on the shadow set."""

    min_spearman: Annotated[float, Field(ge=-1, le=1)]
    """Minimum rank correlation of the baseline with the calibrated reward."""
    min_top10: Share
    """Minimum overlap of their top tenths."""
    min_improve_pct: float
    """By how many per cent the calibrated reward's correlation with success must exceed the baseline's."""
    min_corr_new: Annotated[float, Field(ge=-1, le=1)]
    """The calibrated reward's own correlation with success must exceed this, since an improvement does not make a wrong
    order right. On 245 dialogues chance alone exceeds 0.15 in about one case in a hundred."""
    max_length_corr: Share
    """Maximum rank correlation of either reward with the answers' length among dialogues of the same outcome."""
    repeats_at: Share
    """Correlation with another weighted criterion at which a criterion counts as its repetition."""
    max_repeats: Share
    """Maximum share of the weighted criteria that vary, that may repeat another one."""


class CalibrationGate(Section):
    """Thresholds of the calibration, on held-out folds."""

    min_corr: Annotated[float, Field(ge=-1, le=1)]
    """The calibrated weights' own rank correlation must exceed this, since an improvement does not make a wrong order
    right."""
    min_improve_pct: float
    """By how many per cent the median rank correlation must exceed that of the old weights."""
    min_mae_drop_pct: float
    """By how many per cent the mean absolute error must be below that of the old weights."""


class AblationGate(Section):
    """Thresholds of the ablation of the over-clarification penalty."""

    min_prompts: Positive
    """Minimum number of prompts where nothing is missing and whose dialogues differ in whether they ask."""
    min_rate_drop_pct: float
    """By how many per cent the penalty must lower the over-clarification rate."""
    max_turns_up: float
    """By how many turns the mean may rise."""
    max_success_drop_pp: float
    """By how many percentage points success may fall."""


class RewardHackingGate(Section):
    """Thresholds of the reward-hacking evaluation: adversarial policies against the training reward."""

    min_margin: float
    """By how much a policy's mean reward must be below the scripted expert's, on prompts where its answer is wrong."""
    min_margin_part: float
    """The same, separately for every task, bucket, language and need."""
    max_above: Share
    """Maximum share of these prompts on which a policy may earn more than the scripted expert."""
    max_hedge_solved: Share
    """Maximum share of all prompts that a hedge, which does not commit to one answer, may solve by the answer rule."""
    prompts: Positive
    """Prompts of the shadow set that every policy plays; all if it has fewer."""
    min_policies: Positive
    """Minimum number of policies to play."""
    min_prompts: Positive
    """Minimum number of prompts for a verdict on a policy, and on a part."""
    max_drop_pp: Annotated[float, Field(ge=0)]
    """By how many percentage points success may fall if the reward picks from more dialogues about a prompt."""
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
    min_asking_up_pp: float
    """By how many percentage points each of three must rise: recall (the share of prompts asked where asking is
    needed), precision (the share of asked prompts that needed it), and the gap between asking where needed and where
    not."""
    max_proxy_up: NotNegative
    """How far above 0 the low end of the judged score's change may be if success falls."""
    max_truth_down_pp: NotNegative
    """How many percentage points below 0 the high end of success's change may be if the judged score rises."""


class LearnabilityGate(Section):
    """Thresholds of the reward-signal check, on several rollouts of the initial policy."""

    min_prompts: Positive
    """Minimum number of prompts to try of every task and bucket."""
    max_flat: Share
    """Maximum share of prompts whose rollouts all get the same reward."""
    max_alike: Share
    """Maximum share of prompts that either all rollouts solve or none does."""
    min_pass_n: Share
    """Minimum share of prompts that at least one rollout solves."""
    max_cut: Share
    """Maximum share of turns that `rollout_len` or another limit on tokens may cut."""
    max_malformed: Share
    """Maximum share of episodes that may have a malformed turn."""
    max_effect_pp: NotNegative
    """Upper limit on the smallest effect that the held-out prompts can detect, in percentage points of success."""


class ControlGate(Section):
    """Thresholds of a control: training on an uninformative reward must not bring a gain."""

    min_kl: Annotated[float, Field(gt=0)]
    """Minimum KL to the initial policy at the last step, in nats per episode; a policy that did not change proves
    nothing."""
    max_gain_pp: float
    """How many percentage points above 0 the low end of the interval of the change in success may be."""


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
    drift: DriftGate
    anti_simulation: AntiSimulationGate
    judge_agreement: JudgeAgreementGate
    shadow_run: ShadowRunGate
    calibration: CalibrationGate
    ablation: AblationGate
    reward_hacking: RewardHackingGate
    evaluation: EvaluationGate
    learnability: LearnabilityGate
    control: ControlGate
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
