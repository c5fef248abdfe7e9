"""The sections of a run's configuration about scores: the judge, the reward, its calibration and its ablation."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config.addresses import read_address
from rc1_lib.config.values import Positive, Section, Seed, Share, WrittenPath, ordered, rising, sums_to_one
from rc1_lib.errors import ConfigError
from rc1_lib.records import Rule


def _usable(address: str) -> str:
    """Refused before anything is written or recorded: an address that carries a key would stand in every report."""
    try:
        read_address(address)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return address


class JudgeSampling(Section):
    """How the judge's replies are drawn."""

    temperature: Annotated[float, Field(ge=0, le=2)]
    """Of the replies; at 0 the samples of a dialogue are likely all the same."""
    top_p: Annotated[float, Field(gt=0, le=1)]
    """Share of the probability that tokens are drawn from."""
    max_tokens: Positive
    """Most tokens of a reply; a model's thinking counts."""


class ScoreStore(Section):
    """Where replies and the usage log are kept, and for how long a score counts."""

    path: WrittenPath
    """The SQLite file of replies and usage log."""
    ttl_days: Annotated[float, Field(gt=0)]
    """Days for which a stored score counts."""
    model_check_hours: Annotated[float, Field(ge=0)]
    """Stored scores are used only when the provider was seen to answer with the same model version this recently."""


class JudgeLimits(Section):
    """How hard the provider is asked, and for how long."""

    rps: Annotated[float, Field(gt=0)]
    """Requests per second at the start; the rate adapts to what the provider takes."""
    max_rps: Annotated[float, Field(gt=0)]
    """The rate never rises above this."""
    concurrency: Annotated[tuple[Positive, Positive], AfterValidator(ordered)]
    """Fewest and most requests under way; what is used adapts between them."""
    attempts: Positive
    """Most attempts at one reply."""
    bad_reply_attempts: Annotated[int, Field(ge=1, le=10)]
    """Times in all that a reply is asked and paid for which cannot be read; 1 never asks again."""
    timeout_s: Annotated[float, Field(gt=0)]
    """Seconds of one attempt."""
    deadline_s: Annotated[float, Field(gt=0)]
    """Seconds of one reply, all attempts and waits together."""
    max_wait_s: Annotated[float, Field(gt=0)]
    """A provider that asks for a longer pause ends the run; what was paid for is kept."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rps > self.max_rps:
            raise ValueError(f"judge.limits.rps ({self.rps:g}) is above max_rps ({self.max_rps:g})")
        return self


class Prices(Section):
    """What a million tokens cost, in USD."""

    input: Annotated[float, Field(ge=0)]
    """Of the prompt."""
    output: Annotated[float, Field(ge=0)]
    """Of the reply, thinking included."""


class Budget(Section):
    """What one run of the judge may spend; None sets no bound."""

    max_usd: Annotated[float, Field(gt=0)] | None
    """Most USD, worst case of what is under way included."""
    max_calls: Positive | None
    """Most calls."""


class JudgeBaseline(Section):
    """The fixed set of dialogues that the nightly asks the judge about again, with its first scores."""

    path: WrittenPath
    """The file; what the nightly asks is kept beside it."""
    n: Positive
    """Dialogues of the shadow set in it; each night they are asked `samples` times each."""


class Labels(Section):
    """What people say of dialogues: what the judge has to agree with."""

    path: WrittenPath
    """The file that `rc1 label` writes and the gate `judge_agreement` reads."""
    scale: Annotated[tuple[float, float], AfterValidator(rising)] | None
    """The worst and the best score; null where people give verdicts, or scores from 0 to 1."""


class Judge(Section):
    """The judge that scores dialogues. Keys come from the environment, never from here."""

    provider: str
    """Who scores: `rubric`, `openai`, `deepseek_r1` or `gemini`."""
    spec: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Version of the judge's instructions, the name of a file in `configs/judge`; a change invalidates cache and
    ticket."""
    model: str | None
    """The provider's name of the model; every live provider needs one."""
    base_url: Annotated[str, AfterValidator(_usable)] | None
    """Address of an OpenAI-compatible server; null takes the provider's own."""
    structured: bool
    """Whether JSON is asked for by schema; false for servers that cannot."""
    samples: Annotated[int, Field(ge=1, le=100)]
    """Replies per dialogue; its score is their median."""
    sampling: JudgeSampling
    verdict_at: Share
    """A dialogue whose samples lie on both sides of it is reported."""
    labels: Labels
    store: ScoreStore
    limits: JudgeLimits
    prices: Prices
    budget: Budget
    baseline: JudgeBaseline


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
    """Seed of rows, folds and bootstrap."""


class Ablation(Section):
    """The ablation of the over-clarification penalty."""

    takes_path: WrittenPath
    """Several dialogues about each prompt of the shadow set, by the same teacher."""
    takes: Annotated[int, Field(ge=2, le=64)]
    """How many of each."""


class Overclarification(Section):
    """The over-clarification penalty: alpha * min(c, cap)."""

    alpha: Annotated[float, Field(ge=0)]
    """Price of one needless question, in solved tasks."""
    cap: Positive
    """Questions that cost at most; further ones are free."""
