"""Every threshold of every gate: the `gates:` section of a configuration.

There are no defaults: each number that decides something must be in the file, where a reader can see it.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from rc1_lib.config.values import NotNegative, Positive, Reason, Round, Section, Share, Words, names_all, ordered


class SharedThresholds(Section):
    """What several gates have in common."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Confidence level of all intervals."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples for an interval."""
    min_coverage: Share
    """Least share of dialogues or episodes that the judge must have scored, wherever scores decide something."""
    min_outcomes: Positive
    """Fewest solved and fewest unsolved dialogues, or good and bad ones by people's labels: with fewer, a correlation
    with them is meaningless."""
    enough_auc: Share
    """If the old score ranks a success above a failure in at least this share of the pairs, and so does the new one
    (lower end of its interval), no gain is required: hardly any is possible."""
    max_loss_pct: NotNegative
    """By how many per cent the rank correlation with success may then be below the old score's."""
    corr_floor: Annotated[float, Field(gt=0, le=1)]
    """Improvements are relative to the old correlation, or to this value if that is smaller."""


class DiversityGate(Section):
    """Thresholds of the diversity gate."""

    min_distinct2: Share
    """Lowest distinct-2, as the mean over windows."""
    kl3_min: Annotated[float, Field(ge=0)]
    """Lowest 3-gram KL to the old pack's wording of the same dialogues, in nats."""
    roles_min: Positive
    """Fewest roles."""
    styles_min: Positive
    """Fewest styles."""
    min_templates_per_kind: Positive
    """Fewest templates in use of each kind."""
    max_alike: Share
    """Largest share of a template's word pairs that another one of its kind and language has too: above it, both count
    as one template."""


class ShadowSetGate(Section):
    """Thresholds of the shadow set."""

    max_bucket_diff: Share
    """By how much the share of easy, medium or hard rows may differ from the pool's."""


class DuplicatesGate(Section):
    """Thresholds of the duplicate gate."""

    max_dup_pct: Annotated[float, Field(ge=0, le=100)]
    """Largest share of rows, in per cent, that repeat an earlier one."""
    similarity: Share
    """Jaccard similarity from which two rows are near duplicates."""
    shingle: Words
    """Words of a shingle."""
    permutations: Annotated[int, Field(ge=1, le=4096)]
    """Permutations of the MinHash that finds candidates."""
    numbers: Literal["differ", "alike"]
    """Whether rows that differ in numbers alone are copies: `differ`, they are other rows; `alike`, they are copies."""


class LengthGate(Section):
    """Bounds on every row's length."""

    min_len: Positive
    """Fewest tokens of a dialogue."""
    max_len: Positive
    """Most tokens of a dialogue."""


class SemanticLeaks(Section):
    """The search for shadow questions in other words, by a sentence-embedding model."""

    model: Annotated[str, Field(min_length=1)] | None
    """Folder of the model, of the workspace or the project, or an absolute path; null: not looked for, as every report
    of the gate says."""
    false_alarms: Annotated[float, Field(gt=0)]
    """How many innocent questions of the whole pool may be accused on average; the bound on the cosine follows."""
    min_found: Share
    """Least share of paraphrases, in each language of the shadow set, that the model has to recognise at that bound."""


class LeakageGate(Section):
    """Thresholds of the leak gate."""

    ngram: Annotated[Words, Field(ge=2)]
    """Words of an n-gram."""
    max_similarity: Share
    """Highest share of a shadow question's n-grams that may occur in one row."""
    min_words: Words
    """Fewest of its words, in order in one place, that count as a leak; a shorter question must occur whole."""
    in_order: Share
    """Least share of its words, in order in one place, that counts as a leak."""
    max_kept: Share
    """Highest share of those words' weight in such a place, if the row's own question has another wording."""
    max_kept_alike: Share
    """The same if the row's own question is worded like the shadow question."""
    semantic: SemanticLeaks


class ConsistencyGate(Section):
    """Thresholds of the consistency gate."""

    max_rows: Annotated[int, Field(ge=0)]
    """Most rows with one kind of inconsistency."""
    max_other_sums: Share
    """Largest share of word problems whose last sum is not the gold answer: public annotations may end elsewhere."""


class AnswerRuleGate(Section):
    """Thresholds of the gate that tests every task's rule with known-right and known-wrong answers."""

    min_golds: Annotated[int, Field(ge=1)]
    """Fewest different gold answers of a task, except for yes and no: with only one, paying for another question's
    answer would go unnoticed."""
    min_kinds: Positive
    """Fewest kinds of right spellings, and of wrong answers, that must apply to a task's gold answers."""
    max_wrong_paid: Share
    """Largest share of wrong answers that a rule may accept."""
    max_right_refused: Share
    """Largest share of right spellings that a rule may reject."""


class MixGate(Section):
    """Tolerance of the task mix, in percentage points."""

    tolerance_pp: Annotated[float, Field(ge=0)]
    """Largest deviation of a task's share from `datasets`."""


class DifficultyGate(Section):
    """Thresholds of the difficulty gate, on the balanced pool."""

    min_hard_pct: Share
    """Least share of hard rows."""
    max_easy_pct: Share
    """Largest share of easy rows."""
    len_max: Positive
    """Most tokens of a row."""
    turns_max: Positive
    """Most turns of a row."""
    tool_hops_max: Positive
    """Most tool calls of a row."""
    easy_median_min: Share
    """Lowest median clue overlap of the easy rows."""
    hard_median_max: Share
    """Highest median clue overlap of the hard rows."""
    clue_overlap_max_easy: Share
    """Highest median clue overlap of the easy rows."""
    clue_overlap_min_hard: Share
    """Lowest median clue overlap of the hard rows."""


class WeightsGate(Section):
    """Bounds on the reward weights."""

    max_weight: Share
    """Largest weight of a criterion."""
    sum_tolerance: Annotated[float, Field(gt=0)]
    """Largest deviation of the sum of the weights from 1."""


class TrainingGate(Section):
    """Requirements on the training part of this file."""

    min_steps: Positive
    """Fewest `steps`."""
    target_kl: Annotated[tuple[float, float], AfterValidator(ordered)]
    """Lowest and highest `target_kl`."""
    min_seeds: Positive
    """Fewest `seeds`."""
    methods: tuple[str, ...]
    """Allowed values of `finetune.method`."""


class ResourcesGate(Section):
    """Requirements on the machine."""

    min_free_gb: Annotated[float, Field(ge=0)]
    """Free disk space for the workspace."""


class GitGate(Section):
    """Requirements on the git state."""

    require_commit: bool
    """Whether the code must be a commit."""
    require_clean: bool
    """Whether files may differ from that commit."""


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
    """Fewest of them that were billed."""
    cache_hit_lt: Annotated[dict[Round, Share], names_all(*get_args(Round))]
    """The share of replays must be below this, by round."""
    min_latency_spread: Annotated[float, Field(gt=0)]
    """Least standard deviation over mean of the live latencies; a network is never as regular as a constant."""
    max_identical: Share
    """Largest share of dialogues whose K replies at a temperature above 0 are identical."""
    max_age_hours: Annotated[float, Field(gt=0)]
    """Greatest age in hours of a live scoring that still counts as evidence."""


class StabilityGate(Section):
    """Thresholds of the stability gate, over the latest dialogues that the judge was asked about."""

    last: Positive
    """How many dialogues are checked."""
    max_variance: Annotated[float, Field(gt=0)]
    """Variance between the K scores of a criterion above which a dialogue is unstable; above it, pooled over dialogues,
    the judge is."""
    max_unstable: Share
    """Largest share of unstable dialogues."""
    max_models: Positive
    """Most model versions that may have answered."""


class DriftGate(Section):
    """Thresholds of the nightly comparison of the judge with its first scores."""

    min_coverage: Share
    """Least share of the fixed set that must be scored again."""
    min_dialogues: Positive
    """Fewest dialogues to compare; with fewer, no baseline is recorded either."""
    false_alarms: Annotated[float, Field(gt=0, lt=0.5)]
    """Share of nights on which an unchanged judge may fail: the bounds of all figures follow from it and from the noise
    between the judge's samples."""


class JudgeAgreementGate(Section):
    """Thresholds of the judge's agreement with people, over this judge's labelled dialogues."""

    min_labels: Positive
    """Fewest dialogues with a person's label; with fewer, the judge is uncalibrated."""
    min_kappa: Annotated[float, Field(ge=-1, le=1)]
    """Lowest kappa of the judge's score with people's labels; quadratic weights if labels are scores."""
    min_corr: Annotated[float, Field(ge=-1, le=1)]
    """Lowest rank correlation of the judge's score with people's labels."""
    max_likeness: Share
    """Largest raw agreement or rank correlation of the labels with any overall score: people who never differ from the
    judge have copied it."""
    people_reach: Share
    """What two people reach, by the same figure: above it, `min_labels` dialogues need a second person's label."""


class ShadowRunGate(Section):
    """Thresholds of the comparison of the old score with the new reward on the shadow set."""

    min_spearman: Annotated[float, Field(ge=-1, le=1)]
    """Lowest rank correlation of the old score with the new reward."""
    min_top10: Share
    """Least overlap of the two top tenths."""
    min_improve_pct: float
    """By how many per cent the new reward's correlation with success must exceed the old score's."""
    min_corr_new: Annotated[float, Field(ge=-1, le=1)]
    """The new reward's own correlation with success must exceed this: no improvement makes up for a wrong order.
    On 245 dialogues chance alone exceeds 0.15 in about one case in a hundred."""
    max_length_corr: Share
    """Largest rank correlation of either score with the answers' length among dialogues of the same outcome."""
    repeats_at: Share
    """Correlation with another weighed dimension from which a dimension counts as its repetition."""
    max_repeats: Share
    """Largest share of the weighed dimensions, of those that vary, that repeat another one."""


class CalibrationGate(Section):
    """Thresholds of the calibration, on held-out folds."""

    min_corr: Annotated[float, Field(ge=-1, le=1)]
    """The calibrated weights' own rank correlation must exceed this: no improvement makes up for a wrong order."""
    min_improve_pct: float
    """By how many per cent the median rank correlation must exceed that of the old weights."""
    min_mae_drop_pct: float
    """By how many per cent the mean absolute error must be below that of the old weights."""


class AblationGate(Section):
    """Thresholds of the ablation of the over-clarification penalty."""

    min_prompts: Positive
    """Fewest prompts where nothing is missing and whose dialogues differ in whether they ask."""
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
    """The same for every task, bucket, language and need separately."""
    max_above: Share
    """Share of these prompts on which a policy may earn more than the scripted expert."""
    max_hedge_solved: Share
    """Share of all prompts that a hedge, which does not commit to one answer, may solve by the answer rule."""
    prompts: Positive
    """Prompts of the shadow set on which every policy is played; all if it has fewer."""
    min_policies: Positive
    """Fewest policies to play."""
    min_prompts: Positive
    """Fewest prompts for a verdict on a policy, and on a part."""
    max_drop_pp: Annotated[float, Field(ge=0)]
    """By how many percentage points success may fall if the reward picks from more dialogues about a prompt."""
    own: tuple[str, ...]
    """Custom policies: Python files, each with a function `play(scene)`. A file of the workspace is run only where
    `--set` names it."""


class EvaluationGate(Section):
    """Thresholds of the evaluation of a trained policy against the initial one, on held-out prompts."""

    min_prompts: Positive
    """Fewest held-out prompts of every training seed, of a control too; with fewer, there is no verdict."""
    min_group: Positive
    """Fewest of them that need asking, that are clear, and that are hard: each group decides a check."""
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
    """Thresholds of the reward-signal check, on several rollouts of the initial policy: `rc1 learnability`."""

    min_prompts: Positive
    """Fewest prompts of every task and bucket to try."""
    max_flat: Share
    """Largest share of prompts whose rollouts all get the same reward."""
    max_alike: Share
    """Largest share of prompts that all rollouts solve, or none."""
    min_pass_n: Share
    """Least share of prompts that at least one rollout solves."""
    max_cut: Share
    """Largest share of turns that `rollout_len` or another limit on tokens may cut."""
    max_malformed: Share
    """Largest share of episodes that may have a malformed turn."""
    max_effect_pp: NotNegative
    """Upper limit on the smallest effect that the held-out prompts can detect, in percentage points of success."""


class ControlGate(Section):
    """Thresholds of a control: training on a reward without information must not bring a gain."""

    min_kl: Annotated[float, Field(gt=0)]
    """Least KL to the start at the last step, in nats per episode: a policy that did not change shows nothing."""
    max_gain_pp: float
    """How many percentage points above 0 the low end of the interval of the change in success may be."""


class Gates(Section):
    """Every threshold of every gate, and the waivers."""

    shared: SharedThresholds
    shadow_set: ShadowSetGate
    diversity: DiversityGate
    duplicates: DuplicatesGate
    length: LengthGate
    leakage: LeakageGate
    consistency: ConsistencyGate
    answer_rule: AnswerRuleGate
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
    """`verified_reward` -> why training does not pay for the judged score (`training.reward.judge: 0`), so that the
    gates on that score do not apply. Profile `prod` requires this reason."""
    waivers: dict[str, Reason]
    """Gate name -> why it is not enforced. Profile `prod` allows this only for `judge_agreement`."""
