"""The sections of a run's configuration about scores: the judge, the reward, its calibration and ablation."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rc1_lib.config.addresses import read_address
from rc1_lib.config.values import Positive, Section, Seed, Share, WrittenPath, ordered, sums_to_one
from rc1_lib.errors import ConfigError


def _usable(address: str) -> str:
    """Reject an address with a key before anything is written; otherwise every report would show the key."""
    try:
        read_address(address)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return address


Channel = Literal["schema", "tool", "text"]
Renamed = Literal["temperature", "top_p", "max_tokens", "system"]


class JudgeSampling(Section):
    """How the judge's replies are sampled. null: the parameter is not sent, and the model's own default applies."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None
    """Temperature of the replies, with a `top_p` of 1; at 0 all samples of a dialogue are likely the same. Many
    reasoning models accept neither: null sends neither."""
    max_tokens: Positive | None
    """Maximum tokens of a reply, including thinking. Without it a budget assumes 131,072 per call."""


STORE_PATH = "data/judge/scores.sqlite"
"""The SQLite file of replies and usage log."""


class ScoreStore(Section):
    """How long a stored score is valid."""

    ttl_days: Annotated[float, Field(gt=0)]
    """Days for which a stored score is valid."""


class JudgeLimits(Section):
    """Rate, concurrency and timeouts of requests to the provider."""

    rps: Annotated[float, Field(gt=0)]
    """Initial requests per second; the rate adapts to what the provider accepts."""
    concurrency: Annotated[tuple[Positive, Positive], AfterValidator(ordered)]
    """Minimum and maximum number of concurrent requests; it adapts between them."""
    timeout_s: Annotated[float, Field(gt=0)]
    """Timeout of one attempt, in seconds."""


_MILLION = 1_000_000


class Prices(Section):
    """Prices in USD per million tokens; null: unknown, as every cost then is; 0: for a free judge."""

    input: Annotated[float, Field(ge=0)] | None
    """Price of the prompt."""
    output: Annotated[float, Field(ge=0)] | None
    """Price of the reply, including thinking."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.input is None) != (self.output is None):
            raise ValueError("judge.prices has only one of input and output; set both, or neither")
        return self

    @property
    def known(self) -> bool:
        """Whether a cost can be computed."""
        return self.input is not None

    def usd(self, tokens_in: float, tokens_out: float) -> float | None:
        """Return the cost of these tokens in USD; None if prices are unknown."""
        if self.input is None or self.output is None:
            return None
        return (tokens_in * self.input + tokens_out * self.output) / _MILLION


class Budget(Section):
    """Budget of one run of the judge; null: no limit. In a training `training.cap` takes its place."""

    max_usd: Annotated[float, Field(gt=0)] | None
    """Maximum USD, including the worst case of requests in flight."""
    max_calls: Positive | None
    """Maximum number of calls."""


BASELINE_PATH = "data/judge/baseline/judge_baseline.json"
"""The file of the baseline; the nightly's scores are stored next to it."""


class JudgeBaseline(Section):
    """The fixed set of dialogues with first scores, which the judge scores again every night."""

    n: Positive
    """Number of its dialogues, from the shadow set; every night each of them is scored `samples` times."""


class Labels(Section):
    """People's labels, with which the judge must agree."""

    path: WrittenPath
    """The sheet that `rc1 label` writes and the gate `judge_agreement` reads, `.jsonl` or `.csv`."""


class Judge(Section):
    """The judge that scores dialogues. API keys come from the environment, never from this file."""

    provider: str
    """The provider: `rubric`, `openai`, `deepseek_r1` or `gemini`."""
    spec: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Version of the judge's instructions, the name of a file in `configs/judge`; a change invalidates cache and
    ticket."""
    model: str | None
    """The provider's name for the model; required for every live provider."""
    base_url: Annotated[str, AfterValidator(_usable)] | None
    """Address of an OpenAI-compatible server; null: the provider's own."""
    channel: Channel
    """How the judge returns grades: `schema` (JSON enforced by a schema), `tool` (arguments of a tool call) or `text`
    (by instructions only)."""
    names: dict[Renamed, Annotated[str, Field(min_length=1)]]
    """Parameters that a server of the OpenAI protocol calls by another name, such as `{max_tokens:
    max_completion_tokens}`; `{system: user}` is for models without a system message."""
    samples: Annotated[int, Field(ge=1, le=100)]
    """Replies per dialogue; its score is their median."""
    sampling: JudgeSampling
    verdict_at: Share
    """The cut between bad and good; a dialogue with samples on both sides of it is reported."""
    labels: Labels
    store: ScoreStore
    limits: JudgeLimits
    prices: Prices
    ask_above_usd: Annotated[float, Field(ge=0)] | None
    """If the judge of a preflight, calibration or training may cost more USD than this, the user must confirm at a
    terminal; without a terminal it is an error. null: never ask."""
    budget: Budget
    baseline: JudgeBaseline


class Reward(Section):
    """The baseline reward."""

    old_weights: dict[str, Share]
    """The baseline reward's fixed weights over the judge's seven dimensions: the prior of the calibration."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.old_weights, "reward.old_weights")
        return self


class Calibration(Section):
    """How the weights of the calibrated reward are fitted."""

    n: Positive
    """Dialogues of the balanced pool to judge for the fit; the shadow set is not used."""
    cv: Annotated[int, Field(ge=2, le=50)]
    """Folds of the cross-validation; dialogues about one source question stay in one fold."""
    boot: Annotated[int, Field(ge=20, le=100_000)]
    """Bootstrap samples of source questions."""
    l2: Annotated[float, Field(ge=0, le=1e6)]
    """Pull towards the old weights: l2 * ||w - w_old||², added to the mean squared error."""
    seed: Seed
    """Seed of rows, folds and bootstrap."""


TAKES_PATH = "data/shadow_takes.jsonl"
"""Several rollouts of each shadow prompt by the scripted expert, from which the ablation picks."""


class Ablation(Section):
    """The ablation of the over-clarification penalty."""

    takes: Annotated[int, Field(ge=2, le=64)]
    """Rollouts per prompt."""


class Overclarification(Section):
    """The over-clarification penalty: alpha * min(c, cap)."""

    alpha: Annotated[float, Field(ge=0)]
    """Penalty for one needless question, as a fraction of a solved task's reward."""
    cap: Positive
    """Maximum number of penalised questions; further ones are free."""
