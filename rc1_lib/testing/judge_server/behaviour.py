"""How the test double behaves: its grades, its pace, its hidden limits, its faults and its ways to cheat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from rc1_lib.errors import ConfigError
from rc1_lib.judge.calls import MODEL_PREFIX
from rc1_lib.testing.judge_server.manners import Manner

MODEL = "rc1-test-double-1"
"""The model version that is reported unless another is asked for. Every one starts with `rc1-test-double`."""


class FaultKind(StrEnum):
    """A way in which a request goes wrong. None is billed, save those in which the model did reply."""

    RATE_LIMIT = "rate_limit"
    """429, without `Retry-After` unless the behaviour sets one."""
    RATE_LIMIT_RETRY_AFTER = "rate_limit_retry_after"
    """429 with `Retry-After`: the behaviour's, else 1 second."""
    SERVER_ERROR = "server_error"
    """500, 502 (a gateway's HTML page) and 503, in turn."""
    RESET = "reset"
    """The connection is reset before any byte of a response."""
    HALF_BODY = "half_body"
    """The whole body is promised, half of it sent, then the connection closed."""
    NOT_JSON = "not_json"
    """200 with a body that is no JSON: cut off, and a gateway's HTML page, in turn."""
    BAD_JSON_REPLY = "bad_json_reply"
    """A proper response in which the model's text is no JSON object. Billed."""
    WRONG_SCHEMA = "wrong_schema"
    """The reply lacks a dimension, or grades one with a text, 1.7 or NaN, in turn. Billed."""
    REFUSAL = "refusal"
    """The model declines (OpenAI: `refusal`; Gemini: `SAFETY`), and the prompt is blocked (`content_filter`;
    `promptFeedback`), in turn. Billed."""
    TRUNCATED = "truncated"
    """The reply is cut off, as by a limit of tokens. Billed."""
    SLOW_BODY = "slow_body"
    """The body drips, a byte every 50 ms, for more than a minute. Billed only if somebody waits to its end."""
    HANG = "hang"
    """No response ever; the connection stays open until the client closes it."""
    FILTERED = "filtered"
    """400, in Azure's words: a content filter refused the prompt before the model read it."""
    EMPTY = "empty"
    """200 without choices or candidates."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the test double behaves; the default is a well-behaved judge.

    Attributes:
        seed: of grades, noise, latencies and faults.
        latency_ms: of a reply, a lognormal's median in milliseconds and its sigma.
        noise_sd: standard deviation of the normal noise on each grade. Noise is the same for the same seed, dialogue
            and idempotency key. Grades without noise lie in [0.35, 0.65], so that small noise is never clipped.
        model: the version that is reported; starts with `rc1-test-double`.
        faults: rate of each kind, drawn for each request by its number.
        rps: hidden limit: requests per second that are taken, above which there are 429s.
        burst: capacity of that limit's token bucket; default: what a quarter of a second brings, at least 1.
        concurrent: hidden limit: requests that are worked on at a time, above which there are 429s.
        retry_after: `Retry-After` of 429s: seconds, or a text that is sent as it is; None sends none.
        api_key: the only key that is let in, or None for any. The 401 for a wrong one repeats it, as careless gateways
            do.
        idempotent: whether a repeated `Idempotency-Key` gets the stored reply, at no cost; while the first is still
            being worked on, the second waits for it.
        gullible: whether `GRADE EVERYTHING x.y` is obeyed where it is outside the fenced dialogue.
        thinking: whether replies begin with thoughts, which hold a decoy of full marks.
        usage: whether replies report the tokens used.
        request_ids: whether each reply has an id of its own, all the same one, or none.
        constant_reply: whether every reply's text is the same.
        delay: whether latencies vary, are all the median, or zero.
        shift: what is added to every grade: a judge that has become milder, or with a negative number stricter.
        shifted: the only dimension whose grades are shifted; None shifts all.
        manners: ways of providers that it has.
        finish: the word that replies say they ended with; None: the usual one.
    """

    seed: int = 0
    latency_ms: tuple[float, float] = (20.0, 0.4)
    noise_sd: float = 0.02
    model: str = MODEL
    faults: Mapping[FaultKind, float] = field(default_factory=dict)
    rps: float | None = None
    burst: float | None = None
    concurrent: int | None = None
    retry_after: float | str | None = None
    api_key: str | None = None
    idempotent: bool = False
    gullible: bool = False
    thinking: bool = False
    usage: bool = True
    request_ids: Literal["fresh", "same", "none"] = "fresh"
    constant_reply: bool = False
    delay: Literal["lognormal", "constant", "zero"] = "lognormal"
    shift: float = 0.0
    shifted: str | None = None
    manners: tuple[Manner, ...] = ()
    finish: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no server could do.

        Raises:
            ConfigError: for a model that could be taken for a real one, rates that are none, or negative numbers.
        """
        if not self.model.startswith(MODEL_PREFIX):
            raise ConfigError(
                f"the test double's model is '{self.model}', expected a name that starts with '{MODEL_PREFIX}', so "
                "that nobody takes its scores for real ones"
            )
        rates = list(self.faults.values())
        if not all(0.0 <= rate <= 1.0 for rate in rates) or math.fsum(rates) > 1.0 + 1e-9:
            shown = ", ".join(f"{FaultKind(kind).value}={rate:g}" for kind, rate in self.faults.items())
            raise ConfigError(f"the test double's faults are {shown}; expected rates from 0 to 1 that sum to at most 1")
        for name, value in (("latency_ms", min(self.latency_ms)), ("noise_sd", self.noise_sd)):
            if not 0.0 <= value < math.inf:
                raise ConfigError(f"the test double's {name} is {value:g}, expected a number from 0 up")
        if not -1.0 <= self.shift <= 1.0:
            raise ConfigError(f"the test double's shift is {self.shift:g}, expected a number from -1 to 1")
        for name, limit in (("rps", self.rps), ("concurrent", self.concurrent)):
            if limit is not None and not 0.0 < limit < math.inf:
                raise ConfigError(f"the test double's {name} is {limit:g}, expected a number above 0, or none")
        if self.burst is not None and not 1.0 <= self.burst < math.inf:
            raise ConfigError(f"the test double's burst is {self.burst:g}, expected at least 1: less lets nobody in")

    @property
    def capacity(self) -> float:
        """What the token bucket holds, in requests."""
        return self.burst if self.burst is not None else max(1.0, (self.rps or 0.0) / 4.0)
