"""The section `training` of a run's configuration: the world's bounds, the reward, the policy and how it learns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config_values import MetricName, NotNegative, Positive, Section, Seed, Share, WrittenPath
from rc1_lib.learners import ENGINES, OFFLINE, PLAYED, STRATEGIES, Learner, names_of, own_name
from rc1_lib.records import Language


def _of_episodes(learners: Mapping[str, Learner]) -> AfterValidator:
    """A check that a name is one of those that a run can be trained by."""

    def check(name: str) -> str:
        if learners is ENGINES and name in OFFLINE:
            raise ValueError(f"found '{name}', but {OFFLINE[name]}; take {' or '.join(names_of(learners, *PLAYED))}")
        if name not in (names := names_of(learners, *PLAYED)):
            raise ValueError(
                f"found '{name}', expected {' or '.join(names)}, since a run learns from episodes of its own; for "
                f"supervised training use `rc1 train --config configs/train_local.yaml`"
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


class EpisodeLimits(Section):
    """How far an episode may go; see `rc1_lib.environment.limits.Limits`."""

    turns: Positive
    """Messages of the model, the final answer included."""
    tokens: Positive
    """Tokens of the model's messages and of all observations together, without the prompt."""
    tool_errors: Annotated[int, Field(ge=0)]
    """Failed tool calls that are forgiven; one more ends the episode."""
    malformed: Annotated[int, Field(ge=0)]
    """Malformed turns that are forgiven; one more ends the episode."""
    calls: Positive
    """Tool calls in one turn."""
    turn_chars: Positive
    """Characters of one turn; what is longer is not read."""
    argument_chars: Positive
    """Characters of one argument of a call."""


class EpisodeReward(Section):
    """What an episode is worth beside the penalty (`overclar`) and the difficulty factor (`difficulty_beta`)."""

    success: NotNegative
    """What a solved episode is worth."""
    judge: NotNegative
    """Weight of the calibrated score of an episode's dialogue, in [0, 1]; at 0 nobody is asked."""
    scores: WrittenPath
    """The folder of the replies that episodes are scored by, and of every step's scores."""
    min_scored: Share
    """The share of a step's episodes that have to be scored."""
    malformed: NotNegative
    """Price of a malformed turn."""
    turn: NotNegative
    """Price of a turn."""


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


class Steps(Section):
    """What the update of every engine has that learns from episodes."""

    epochs: Positive
    """Passes over a step's episodes."""
    minibatches: Positive
    """Updates of one pass; each needs an episode."""
    micro_tokens: Positive
    """Padded tokens of one forward pass: a matter of memory and time, and of the last bits alone."""
    max_grad_norm: Annotated[float, Field(gt=0)]
    """The gradient's norm is clipped to it."""


class Update(Steps):
    """What the update of an engine has beside that whose loss is RC1's own."""

    entropy_coef: NotNegative
    """Weight of the entropy bonus."""
    kl_stop: Annotated[float, Field(gt=0)]
    """Mean KL per token between the policy before an update and now, beyond which the update ends."""
    adaptive_kl: bool
    """Whether `kl_coef` is moved towards `target_kl` (per token), or stays."""
    kl_gain: Annotated[float, Field(gt=0, lt=1)]
    """How strongly a deviation, of at most `kl_bound`, moves it."""
    kl_bound: Annotated[float, Field(gt=0, lt=1)]
    """The largest deviation from `target_kl` that counts, as a share of it."""


class PPO(Update):
    """PPO beside `lr`, `clip`, `kl_coef`, `target_kl`, `batch_size` and `rollout_len`."""

    gamma: Annotated[float, Field(gt=0, le=1)]
    """Discount per token of the policy."""
    lam: Share
    """Lambda of the generalised advantages, per token of the policy."""
    value_clip: Annotated[float, Field(gt=0)]
    """How far a value may go from the one before the update."""
    value_coef: NotNegative
    """Weight of the value loss."""
    value_lr: Annotated[float, Field(gt=0)]
    """Learning rate of the value head."""
    value_warm_up: Annotated[int, Field(ge=0)]
    """First steps in which the value head alone learns."""
    value_epochs: Annotated[int, Field(ge=0)]
    """Passes of the value head alone over a step's episodes, behind the update."""
    whiten: bool
    """Whether a step's advantages are brought to mean 0 and deviation 1 over the policy's own tokens."""


class Grouped(Section):
    """For an engine that compares takes of the same prompt."""

    group_size: Annotated[int, Field(ge=2)]
    """Takes of every prompt in a step; `batch_size` is a multiple of it."""


class GRPO(Grouped, Update):
    """GRPO beside `lr`, `clip`, `kl_coef`, `target_kl`, `batch_size` and `rollout_len`: for `torch_grpo` alone.

    The names and choices are those of TRL's `GRPOConfig`.
    """

    scale_rewards: Literal["group", "batch", "none"]
    """What a take's score above its group's mean is divided by: the group's deviation, that of the step, or nothing."""
    loss_type: Literal["dapo", "grpo", "dr_grpo"]
    """What a token counts: as much as any other of the step, a part of its episode (so that long ones count no more),
    or a share of the most tokens that an episode may have (`training.limits.tokens`)."""
    clip_high: Annotated[float, Field(gt=0)] | None
    """How far the ratio may go above 1; null: as far as below it, `clip`."""


class TrlGRPO(GRPO):
    """The same where the loss is that of TRL's `GRPOTrainer`: for `trl_grpo` alone."""

    importance_sampling_level: Literal["token", "sequence"]
    """What has a ratio of probabilities that is clipped: each token, or an episode's tokens together (GSPO)."""
    use_bias_correction_kl: bool
    """Whether the KL to the reference is weighed by that ratio, so that its gradient is that of the reverse KL."""


class DPO(Grouped, Update):
    """DPO on the best and the worst take of every prompt, for `torch_dpo` alone; its beta is `kl_coef`."""


class TrlDPO(Grouped, Steps):
    """The same on takes of the policy that training begins with, by TRL's `DPOTrainer`: for `trl_dpo` alone."""

    loss_type: Literal["sigmoid", "hinge", "ipo", "apo_zero", "apo_down", "sigmoid_norm"]
    """TRL's name of the loss of a pair: `sigmoid` is DPO's own, `ipo` and `apo_*` are those of their papers."""


class RateSchedule(Section):
    """The learning rates over the steps of a run, as the callback `lr_schedule` of the small configuration has it."""

    kind: Literal["constant", "linear", "cosine"]
    """How they fall to 0 behind the warm-up, if at all."""
    warmup_steps: Annotated[int, Field(ge=0)]
    """Steps over which they rise from 0; fewer than `steps`."""


class Rollout(Section):
    """How episodes are sampled."""

    temperature: Annotated[float, Field(gt=0)]
    """Of the sampled tokens, in training and in the evaluation's sampled mode."""
    rows: Positive
    """Episodes under way at once."""
    prefill_tokens: Positive
    """Tokens of prompts that are read at once, padding included: a matter of memory."""
    sampling_copy: Literal["bf16", "none"]
    """What tokens are sampled with where the base is in 4 or 16 bits: `bf16`, a copy of base and adapter as one matrix
    a layer, two bytes a weight, written anew before every rollout, or the layers as they are. A base in 32 bits is
    merged with its adapter either way."""


class Parity(Section):
    """How near sampling and learning have to come to each other; beyond either bound training ends.

    Both are measured at every step, before its first update: there the policy that learns is the one that sampled, so
    that whatever differs is a fault of the arithmetic or of the weights.
    """

    mean: Annotated[float, Field(gt=0)]
    """Most that a token's log-probability may differ on average, in nats."""
    far_share: Share
    """Most tokens, as a share, whose probabilities may differ by more than a tenth (0.1 nats)."""


class Checkpoints(Section):
    """When checkpoints are written, and which of them stay."""

    every_steps: Positive
    """Steps from one checkpoint to the next."""
    every_minutes: Annotated[float, Field(gt=0)] | None
    """And whenever this much time has passed since the last one; null sets no such bound."""
    keep_last: Annotated[int, Field(ge=2)] | None
    """So many of the newest stay, and of the older ones those that `keep_every` or `held_out.between` names, that a
    report names by their SHA-256, or that are kept for good; the others are removed as new ones are written. At least
    2 and `training.collapse.patience`, so that a good one is left; null: all stay."""
    keep_every: Positive | None
    """Older ones stay at every multiple of this many steps; null: at none."""

    @model_validator(mode="after")
    def _check_keeping(self) -> Self:
        if self.keep_every is None:
            return self
        if self.keep_last is None:
            raise ValueError(
                f"keep_every is {self.keep_every}, but keep_last is null, by which all stay; set keep_last too"
            )
        if self.keep_every % self.every_steps:
            raise ValueError(
                f"keep_every is {self.keep_every}, expected a multiple of every_steps ({self.every_steps}): there are "
                f"checkpoints to keep at such steps only"
            )
        return self


class OnTheWay(Section):
    """The checkpoints between start and end that the evaluation looks at: judged score beside success."""

    checkpoints: Annotated[int, Field(ge=0)]
    """How many, evenly spread over the ends of segments; 0: none."""
    prompts: Annotated[int, Field(ge=0)]
    """How many held-out prompts each of them is asked."""


class HeldOut(Section):
    """The prompts that the evaluation is asked, and training never sees."""

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of source questions kept back."""
    prompts: Positive
    """How many of them are asked, drawn by `priority_sampling.by_difficulty` as far as there are enough."""
    judged: Annotated[int, Field(ge=0)]
    """Prompts whose sampled episodes are judged too: the score is shown beside success. 0: nobody is asked."""
    between: OnTheWay
    seed: Seed
    """Of the draw of prompts, and of the episodes that judge them."""


class ShadowLook(Section):
    """A look at whether training generalises: the policy plays held-out rows on its way, as `eval/*` of the metrics."""

    every_steps: Positive | None
    """Steps from one look to the next; the last of `steps` is looked at too. null: none is taken."""
    prompts: Positive
    """How many rows are played, each once: of source questions that are held out, and not asked by the evaluation."""


class EarlyStopping(Section):
    """When a run ends before `steps`; what it has come to then is what the evaluation judges."""

    metric: MetricName | None
    """Name of a metric, as the log has it: `eval/env/success` with `training.eval_shadow`, or one of every step; null:
    every step is trained."""
    patience: Positive
    """How many times in a row it may fail to become better, counted where it was measured."""
    min_delta: NotNegative
    """What it has to become better by."""
    higher_is_better: bool
    """Whether a larger number is better."""
    not_before: Positive
    """The first step that the run may end with; at least `gates.training.min_steps`."""


class ControlSettings(Section):
    """The short training on a reward without information: `rc1 train --control`."""

    steps: Positive
    """Steps that a control is trained for."""


class LearnabilitySettings(Section):
    """What the start is tried on before a training: `rc1 learnability`."""

    at_start: bool
    """Whether a training that begins anew looks first, and is refused where nothing can be learned."""
    prompts: Positive
    """Rows to learn from that are played, of each task and bucket in its share."""
    takes: Annotated[int, Field(ge=2)]
    """Episodes of each."""


class Collapse(Section):
    """Signs that a run is lost; one that is null is not looked at."""

    max_kl: Annotated[float, Field(gt=0)] | None
    """Largest KL to the start, in nats per token of the policy."""
    min_entropy: NotNegative | None
    """Least mean entropy of what tokens are drawn from, in nats."""
    max_same_answer: Share | None
    """Largest share of a step's answers that may be one and the same."""
    patience: Positive
    """Steps in a row with a sign, at which training ends."""


class Cap(Section):
    """What the training of one seed may take, its evaluation apart.

    At a bound it pauses with a checkpoint; a ticket with a higher one lets it go on.
    """

    hours: Annotated[float, Field(gt=0)] | None
    """Most hours of its steps; null sets no bound."""
    usd: Annotated[float, Field(gt=0)] | None
    """Most USD that the judge of its episodes is paid; null sets no bound."""


class TrialSettings(Section):
    """A few steps on random weights of the base's shape: `rc1 train --random-base`."""

    steps: Positive
    """Steps that a trial is trained for."""
    narrower: Positive
    """What the widths of the shape are divided by, for a machine that it is too large for; 1: the true shape."""
    layers: Positive | None
    """How many of its layers there are; null: all."""


Tracker = Literal["wandb", "mlflow"]


class Tracking(Section):
    """Where the metrics of every step go beside the workspace's own files. What is learned does not hang on it."""

    to: tuple[Tracker, ...] = ()
    """`wandb` (Weights & Biases), `mlflow`: each an extra of RC1, each offline, below `logs`."""
    project: Annotated[str, Field(min_length=1)] = "rc1"
    """The project or experiment that runs are put under."""


class Training(Section):
    """How the policy learns. The originals' keys stand at the top level; this is what they leave open."""

    engine: Annotated[str, _of_episodes(ENGINES)]
    """What updates the policy: `torch_ppo` (`trl_ppo` is another name for it), `torch_grpo`, `trl_grpo`, `torch_dpo`
    or `trl_dpo`."""
    strategy: Annotated[str, _of_episodes(STRATEGIES)]
    """What the engine learns from: `ppo`, one episode of every prompt; `groups`, several of it (GRPO, DPO)."""
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
    lr_schedule: RateSchedule
    rollout: Rollout
    parity: Parity
    checkpoints: Checkpoints
    cap: Cap
    collapse: Collapse
    learnability: LearnabilitySettings
    held_out: HeldOut
    eval_shadow: ShadowLook
    early_stop: EarlyStopping
    control: ControlSettings
    trial: TrialSettings
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
        if metric is not None and metric.startswith("eval/") and self.eval_shadow.every_steps is None:
            raise ValueError(
                f"early_stop.metric is '{metric}', which only a look at held-out rows measures; set "
                f"eval_shadow.every_steps too"
            )
        return self

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
