"""Every threshold of every gate: the `gates:` section of a configuration.

None has a default: each number that decides something must stand in the file, where a reader can see it.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from rc1_lib.config.values import NotNegative, Positive, Reason, Round, Section, Share, Words, names_all, ordered


class DiversityGate(Section):
    """Thresholds of the diversity gate."""

    min_distinct2: Share
    """Lowest distinct-2, as the mean over windows."""
    window_bigrams: Positive
    """Bigrams of a window."""
    kl3_min: Annotated[float, Field(ge=0)]
    """Lowest 3-gram KL against the old pack's wording of the same dialogues, in nats."""
    kl_alpha: Annotated[float, Field(gt=0)]
    """Added to every n-gram's count."""
    kl_rows: Positive
    """Rows of the sample on which the KL is measured."""
    roles_min: Positive
    """Fewest roles."""
    styles_min: Positive
    """Fewest styles."""
    min_templates_per_kind: Positive
    """Fewest templates in use of each kind."""


class DuplicatesGate(Section):
    """Thresholds of the duplicate gate."""

    max_dup_pct: Annotated[float, Field(ge=0, le=100)]
    """Most rows, in per cent, that repeat an earlier one."""
    similarity: Share
    """Jaccard similarity from which on two rows are near duplicates."""
    shingle: Words
    """Words of a shingle."""
    permutations: Annotated[int, Field(ge=1, le=4096)]
    """Permutations of the MinHash that proposes candidates."""


class LengthGate(Section):
    """Bounds on every row's length."""

    min_len: Positive
    """Fewest tokens of a dialogue."""
    max_len: Positive
    """Most tokens of a dialogue."""


class LeakageGate(Section):
    """Thresholds of the leak gate."""

    ngram: Annotated[Words, Field(ge=2)]
    """Words of an n-gram."""
    max_similarity: Share
    """Highest share of a shadow question's n-grams that may stand in one row."""
    min_words: Words
    """Fewest of its words, in order in one place, that can speak of a leak; a shorter question has to stand whole."""
    in_order: Share
    """Least share of its words, in order in one place, that can speak of a leak."""
    max_kept: Share
    """Highest share of those words' weight in such a place, where the row's own question is worded otherwise."""
    max_kept_alike: Share
    """The same where the row's own question is worded like the shadow question."""


class ConsistencyGate(Section):
    """Thresholds of the consistency gate."""

    max_rows: Annotated[int, Field(ge=0)]
    """Most rows with inconsistencies of one kind."""
    max_other_sums: Share
    """Most word problems, as a share, whose last sum is not the gold answer: public marks may end elsewhere."""


class AnswerRuleGate(Section):
    """Thresholds of the gate that asks every task's rule about known-right and known-wrong answers."""

    golds: Annotated[int, Field(ge=2)]
    """Most different gold answers of a task that answers are made from."""
    min_golds: Annotated[int, Field(ge=1)]
    """Fewest different gold answers of a task, but of yes and no: with a single one nobody can be seen to be paid for
    another question's."""
    min_kinds: Positive
    """Fewest kinds of right spellings, and of wrong answers, that have to apply to a task's golds."""
    max_wrong_paid: Share
    """Largest share of the wrong answers that a rule may call right."""
    max_right_refused: Share
    """Largest share of the right spellings that a rule may call wrong."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""
    seed: Annotated[int, Field(ge=0)]
    """Of the draw of golds."""


class MixGate(Section):
    """Tolerance of the task mix, in percentage points."""

    tolerance_pp: Annotated[float, Field(ge=0)]
    """How far a task's share may lie from `datasets`."""


class DifficultyGate(Section):
    """Thresholds of the difficulty gate, on the balanced pool."""

    min_hard_pct: Share
    """Least share of hard rows."""
    max_easy_pct: Share
    """Most easy rows, as a share."""
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
    """No dimension may weigh more."""
    sum_tolerance: Annotated[float, Field(gt=0)]
    """How far the sum of the weights may lie from 1."""


class TrainingGate(Section):
    """What the training part of this file has to hold."""

    min_steps: Positive
    """Fewest `steps`."""
    target_kl: Annotated[tuple[float, float], AfterValidator(ordered)]
    """Lowest and highest `target_kl`."""
    min_seeds: Positive
    """Fewest `seeds`."""
    methods: tuple[str, ...]
    """What `finetune.method` may be."""


class ResourcesGate(Section):
    """What the machine has to offer."""

    min_free_gb: Annotated[float, Field(ge=0)]
    """Free disk space of the workspace."""


class GitGate(Section):
    """What the git fingerprint has to show."""

    require_commit: bool
    """Whether the code has to be a commit."""
    require_clean: bool
    """Whether files may differ from that commit."""


class ProbeGate(Section):
    """The judge probe."""

    n: Positive
    """Dialogues that are really scored."""
    require_billed: bool
    """Whether somebody has to have been billed."""


class AntiSimulationGate(Section):
    """Thresholds of the anti-simulation gate, over the last scorings of the usage log."""

    last: Positive
    """How many scorings are looked at, replays from the cache included."""
    min_billable: Positive
    """Fewest of them that were billed."""
    cache_hit_lt: Annotated[dict[Round, Share], names_all(*get_args(Round))]
    """The share of replays has to lie below this, by round."""
    min_latency_spread: Annotated[float, Field(gt=0)]
    """Standard deviation over mean of the live latencies; a network is never as regular as a constant."""
    max_identical: Share
    """Most dialogues, as a share, whose K replies at a temperature above 0 are the same to the letter."""
    max_age_hours: Annotated[float, Field(gt=0)]
    """Oldest live scoring that still counts as evidence."""


class StabilityGate(Section):
    """Thresholds of the stability gate, over the last dialogues that the judge was asked about."""

    last: Positive
    """How many dialogues are looked at."""
    min_coverage: Share
    """Least share of them that holds all K scores."""
    max_variance: Annotated[float, Field(gt=0)]
    """Variance between the K scores of a dimension above which a dialogue is unstable, and above which, pooled over
    dialogues, the judge is."""
    max_unstable: Share
    """Most unstable dialogues, as a share."""
    max_models: Positive
    """Most model versions that may have answered."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""


class DriftGate(Section):
    """Thresholds of the nightly comparison of the judge with its own first scores."""

    min_coverage: Share
    """Least share of the fixed set that must be scored again."""
    min_dialogues: Positive
    """Fewest dialogues to compare; with fewer no baseline is recorded either."""
    false_alarms: Annotated[float, Field(gt=0, lt=0.5)]
    """Share of the nights on which an unchanged judge may be red: the bounds of all figures follow from it and from
    the noise between the judge's samples."""
    deals: Annotated[int, Field(ge=1000, le=1_000_000)]
    """How often the samples are dealt out anew to measure that noise."""


class JudgeAgreementGate(Section):
    """Thresholds of the judge's agreement with people, over the labelled dialogues of this judge."""

    min_labels: Positive
    """Fewest dialogues with a person's label; with fewer the judge is uncalibrated."""
    min_outcomes: Positive
    """Fewest dialogues among them that people call good, and that they call bad."""
    min_coverage: Share
    """Least share of the labelled dialogues that must be scored."""
    min_kappa: Annotated[float, Field(ge=-1, le=1)]
    """Lowest kappa of the judge's score with people's labels; quadratic weights where they are scores."""
    min_corr: Annotated[float, Field(ge=-1, le=1)]
    """Lowest rank correlation of the judge's score with people's labels."""
    max_likeness: Share
    """Largest raw agreement or rank correlation of the labels with any overall score: people who never differ from the
    judge have copied it."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples behind them."""


class ShadowRunGate(Section):
    """Thresholds of the comparison of the old score with the new reward on the shadow set."""

    min_coverage: Share
    """Least share of the dialogues that must be scored."""
    min_outcomes: Positive
    """Fewest solved and fewest unsolved dialogues: with fewer, a correlation with success says nothing."""
    min_spearman: Annotated[float, Field(ge=-1, le=1)]
    """Lowest rank correlation of the old score with the new reward."""
    min_top10: Share
    """Least overlap of the two top tenths."""
    min_improve_pct: float
    """By how many per cent the new reward's correlation with success must exceed the old score's."""
    enough_auc: Share
    """Where the old score puts a success above a failure in at least this share of the pairs, and the new reward too
    (the lower end of its interval), no gain is asked for: hardly any is possible."""
    max_loss_pct: NotNegative
    """By how many per cent the correlation with success may then lie below the old score's."""
    min_corr_new: Annotated[float, Field(ge=-1, le=1)]
    """The new reward's own correlation with success must lie above this: no improvement makes up for a wrong order.
    On 245 dialogues chance alone exceeds 0.15 in about one case in a hundred."""
    max_length_corr: Share
    """How far either score may follow the length of the answers among dialogues of the same outcome."""
    corr_floor: Annotated[float, Field(gt=0, le=1)]
    """Improvements are relative to the old correlation, or to this where that is smaller."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples behind the reported intervals."""


class CalibrationGate(Section):
    """Thresholds of the calibration, on dialogues that a fold did not fit."""

    min_coverage: Share
    """Least share of the dialogues that must be scored."""
    min_outcomes: Positive
    """Fewest solved and fewest unsolved dialogues."""
    min_corr: Annotated[float, Field(ge=-1, le=1)]
    """The calibrated weights' own rank correlation must lie above this: no improvement makes up for a wrong order."""
    min_improve_pct: float
    """By how many per cent the median rank correlation must exceed that of the old weights."""
    enough_auc: Share
    """Where the old weights put a success above a failure in at least this share of the pairs, and the calibrated ones
    too (the lower end of their interval), no gain is asked for: hardly any is possible."""
    max_loss_pct: NotNegative
    """By how many per cent the median rank correlation may then lie below that of the old weights."""
    min_mae_drop_pct: float
    """By how many per cent the mean absolute error must lie below that of the old weights."""
    corr_floor: Annotated[float, Field(gt=0, le=1)]
    """Improvements are relative to the old correlation, or to this where that is smaller."""
    max_kkt_residual: Annotated[float, Field(gt=0)]
    """How far the solution may be from its optimality conditions."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""


class AblationGate(Section):
    """Thresholds of the ablation of the over-clarification penalty."""

    min_coverage: Share
    """Least share of the dialogues that must be scored."""
    min_prompts: Positive
    """Fewest prompts on which nothing is missing and whose dialogues differ in whether they ask."""
    min_rate_drop_pct: float
    """By how many per cent the penalty must lower the over-clarification rate."""
    max_turns_up: float
    """By how many turns the mean may rise."""
    max_success_drop_pp: float
    """By how many percentage points success may fall."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples behind them."""


class RewardHackingGate(Section):
    """Thresholds of the attack by worthless policies on what training pays."""

    min_margin: float
    """By how much a policy's mean reward must lie below the teacher's, on prompts where its answer is worthless."""
    min_margin_part: float
    """The same in every task, bucket, language and need by itself."""
    max_above: Share
    """Share of these prompts on which a policy may be paid more than the teacher."""
    max_hedge_solved: Share
    """Share of all prompts that a hedge, which commits to no answer, may solve by the answer rule."""
    prompts: Positive
    """Prompts of the shadow set that every policy is played on; all where it holds fewer."""
    min_policies: Positive
    """Fewest policies that have to be played."""
    min_prompts: Positive
    """Fewest prompts to judge a policy by, and to judge a part by."""
    min_coverage: Share
    """Share of the dialogues that must be scored."""
    max_drop_pp: Annotated[float, Field(ge=0)]
    """By how many percentage points success may fall when the reward picks from more dialogues about a prompt."""
    own: tuple[str, ...]
    """Policies of one's own: Python files of the workspace, each with a function `play(scene)`."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Nominal share of such intervals that hold the true value."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples behind the intervals."""


class EvaluationGate(Section):
    """Thresholds of the evaluation of a trained policy against the one it started from, on held-out prompts."""

    min_prompts: Positive
    """Fewest held-out prompts of every training seed; with fewer there is no verdict."""
    min_group: Positive
    """Fewest of them that need asking, that are clear, and that are hard: each group decides a check."""
    min_needed_up_pp: float
    """By how many percentage points success must rise where asking is needed."""
    min_hard_up_pp: float
    """By how many percentage points success must rise on hard rows of multi-hop tasks (HotpotQA, StrategyQA)."""
    min_overclar_down_pct: float
    """By how many per cent of itself the over-clarification rate must fall."""
    max_turns_up: float
    """By how many turns the mean may rise."""
    min_recall_up_pp: float
    """By how many percentage points the share of prompts asked must rise where asking is needed."""
    min_precision_up_pp: float
    """By how many percentage points the share of asked prompts that need it must rise."""
    min_gap_up_pp: float
    """By how many percentage points asking where needed must draw away from asking where not."""
    min_judged: Share
    """Least share of the judged episodes that has to have a score."""
    max_proxy_up: NotNegative
    """How far above 0 the low end of the judged score's change may lie where success falls."""
    max_truth_down_pp: NotNegative
    """How many percentage points below 0 the high end of success's change may lie where the judged score rises."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Of the reported intervals."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples behind them."""


class LearnabilityGate(Section):
    """Thresholds of what the start does on prompts to learn from, played several times: `rc1 learnability`."""

    min_prompts: Positive
    """Fewest prompts of every task and bucket that have to be tried."""
    max_flat: Share
    """Largest share of prompts whose takes are all worth the same."""
    max_alike: Share
    """Largest share of prompts that all takes solve, or none."""
    min_pass_n: Share
    """Least share of prompts that one of all takes solves."""
    max_effect_pp: NotNegative
    """Largest that the smallest effect may be which the held-out prompts can show, in percentage points of success."""
    power: Annotated[float, Field(gt=0.5, lt=1)]
    """The chance with which an effect has to be shown."""


class ControlGate(Section):
    """Thresholds of a control: a training on a reward without information, after which nothing may have been gained."""

    min_prompts: Positive
    """Fewest held-out prompts; with fewer there is no verdict."""
    min_kl: Annotated[float, Field(gt=0)]
    """Least KL to the start at the last step, in nats an episode: a policy that did not move tries nothing out."""
    max_gain_pp: float
    """Percentage points that the low end of the interval of the change in success may lie above 0."""
    confidence: Annotated[float, Field(gt=0, lt=1)]
    """Nominal share of such intervals that hold the true value."""
    resamples: Annotated[int, Field(ge=20)]
    """Bootstrap samples behind the interval."""


class Gates(Section):
    """Every threshold of every gate, and the waivers."""

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
    """`verified_reward` -> why nothing is paid for the judged score (`training.reward.judge: 0`), so that the gates on
    that score do not apply. Profile `prod` asks for this reason."""
    waivers: dict[str, Reason]
    """Gate name -> why it is not enforced. Profile `prod` allows one for `judge_agreement` alone."""
