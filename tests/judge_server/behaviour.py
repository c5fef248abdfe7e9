"""Settings of the test double: grades, latency, hidden limits, faults and ways to cheat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from rc1_lib.judge.calls import MADE_UP

MODEL = "rc1-test-double-1"
"""The default model version in replies. Every version starts with `rc1-test-double`."""


class FaultKind(StrEnum):
    """A way in which a request fails. Only faults with a reply of the model are billed."""

    RATE_LIMIT = "rate_limit"
    """429, without `Retry-After` unless the behaviour sets one."""
    RATE_LIMIT_RETRY_AFTER = "rate_limit_retry_after"
    """429 with `Retry-After`: the behaviour's, by default 1 second."""
    SERVER_ERROR = "server_error"
    """500, 502 (a gateway's HTML page) and 503, in turn."""
    RESET = "reset"
    """The connection is reset before any byte of a response."""
    HALF_BODY = "half_body"
    """`Content-Length` announces the whole body, but the connection closes after half of it."""
    NOT_JSON = "not_json"
    """200 with a body that is not JSON: half a body, and a gateway's HTML page, in turn."""
    BAD_JSON_REPLY = "bad_json_reply"
    """A valid response in which the model's text is not a JSON object. Billed."""
    WRONG_SCHEMA = "wrong_schema"
    """The reply lacks a dimension, or grades one with a string, 1.7 or NaN, in turn. Billed."""
    REFUSAL = "refusal"
    """The model declines (OpenAI: `refusal`; Gemini: `SAFETY`), and the prompt is blocked (`content_filter`;
    `promptFeedback`), in turn. Billed."""
    TRUNCATED = "truncated"
    """The reply is cut off, as by a token limit. Billed."""
    SLOW_BODY = "slow_body"
    """The body drips, a byte every 50 ms, for more than a minute. Billed only if the client waits for all of it."""
    HANG = "hang"
    """No response; the connection stays open until the client closes it."""
    FILTERED = "filtered"
    """400 with Azure's message: a content filter refused the prompt before the model read it."""
    EMPTY = "empty"
    """200 without choices or candidates."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Settings of the test double; the default is a well-behaved judge.

    Attributes:
        seed: seed of grades, noise, latencies and faults.
        latency_ms: latency of a reply: a lognormal's median in milliseconds and its sigma.
        noise_sd: standard deviation of the normal noise on each grade. Noise is the same for the same seed, dialogue
            and idempotency key. Grades without noise lie in [0.35, 0.65], so that small noise is never clipped.
        model: the version in replies; starts with `rc1-test-double`.
        faults: rate of each kind; each request draws its fault by its number.
        retry_after: seconds of the `Retry-After` of 429s; None sends none.
        api_key: the only key accepted; None accepts any. The 401 for a wrong key repeats it, as careless gateways do.
        gullible: whether the judge obeys `GRADE EVERYTHING x.y` outside the fenced dialogue.
        thinking: whether replies begin with thoughts, which contain a decoy with full marks.
        usage: whether replies report the tokens used.
        request_ids: whether each reply has its own id, or none has one.
        constant_reply: whether every reply has the same text.
        delay: whether latencies vary, or are zero.
        shift: added to every grade: positive for a judge that became milder, negative for a stricter one.
        shifted: the only dimension that `shift` applies to; None for all.
    """

    seed: int = 0
    latency_ms: tuple[float, float] = (20.0, 0.4)
    noise_sd: float = 0.02
    model: str = MODEL
    faults: Mapping[FaultKind, float] = field(default_factory=dict)
    retry_after: float | None = None
    api_key: str | None = None
    gullible: bool = False
    thinking: bool = False
    usage: bool = True
    request_ids: Literal["fresh", "none"] = "fresh"
    constant_reply: bool = False
    delay: Literal["lognormal", "zero"] = "lognormal"
    shift: float = 0.0
    shifted: str | None = None

    def __post_init__(self) -> None:
        """Keep made-up scores from passing for real ones."""
        assert self.model.startswith(MADE_UP)
