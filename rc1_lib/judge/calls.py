"""One call to a provider: the request, the answer, the ways it can fail, and what is stored of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rc1_lib.records import Message

if TYPE_CHECKING:
    from rc1_lib.config.judge import JudgeSampling

Finish = Literal["stop", "length", "refusal", "fault", "unknown"]
_WORDS: dict[Finish, str] = {
    "stop": "stop eos eos_token stop_sequence end_turn complete completed tool_calls tool_call tool_use function_call",
    "length": "length max_tokens model_length model_context_window_exceeded context_length_exceeded max_output_tokens"
    " continuation pause_turn",
    "refusal": "content_filter content_filtered refusal safety recitation language blocklist prohibited_content spii"
    " escalation sensitive error_toxic guardrail_intervened image_safety model_armor",
    "fault": "error error_limit abort aborted cancelled timeout network_error insufficient_system_resource"
    " malformed_response",
}
FINISHED: Mapping[str, Finish] = MappingProxyType(
    {word: finish for finish, words in _WORDS.items() for word in words.split()}
)
"""Maps a provider's finish reason, in lower case, to how the reply ended, for all protocols.

OpenAI, Azure, Anthropic, Gemini, Mistral, Cohere, DeepSeek and Zhipu document their words; vLLM, SGLang, TGI, Ollama
and OpenRouter define theirs in their source. Any other word is `unknown` and leaves the reply unscored: better to
inspect a judge than to count half a reply."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The request of one call.

    Attributes:
        user: the dialogue to grade, fenced.
        schema: the JSON schema that the reply has to satisfy.
        sampling: sampling parameters of the reply.
        attempt_id: unique to this attempt; sent along, so that the provider's records can be matched with ours.
        idempotency_key: the same for every attempt at the same reply; a gateway that honours it bills the reply once.
        messages: the dialogue itself, for judges that read it directly. It never holds the gold answer.
    """

    system: str
    user: str
    schema: Mapping[str, Any]
    sampling: JudgeSampling
    attempt_id: str
    idempotency_key: str
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider returned.

    Attributes:
        text: the model's reply, or the arguments of its only tool call; thinking may still be in it.
        model: the model version that answered, as the provider reports it; empty if it does not.
        request_id: the provider's id of this reply; empty if it gives none.
        tokens_in: tokens read, as the provider counts them; 0 if it reports no usage.
        tokens_out: tokens written, thinking included; 0 if it reports no usage.
        billable: whether the provider reported usage, which is what gets billed.
        finish: `stop`, `length` (cut off), `refusal` (the model or a filter declined), `fault` (the server broke off)
            or `unknown`.
        reason: the provider's own word for `finish`.
        thoughts: thinking that the provider returns in a separate field.
    """

    text: str
    model: str
    request_id: str
    tokens_in: int
    tokens_out: int
    billable: bool
    finish: Finish
    reason: str = ""
    thoughts: str = ""


def finish_of(reason: Any) -> tuple[Finish, str]:
    """Return how a reply ended, and the provider's word for it.

    A reply without a finish reason counts as whole: simple servers leave it out, and half a reply is not valid JSON.
    """
    if reason is None or reason == "":
        return "stop", ""
    word = str(reason)[:40]
    return FINISHED.get(word.lower(), "unknown"), word


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    """A reply that holds scores."""
    HIT = "hit"
    """A score from the store: no call was sent, nothing was paid."""
    BAD_REPLY = "bad_reply"
    """A billed reply without valid scores: not JSON, another shape, numbers outside [0, 1]."""
    REFUSED = "refused"
    """The model declined to grade, or a filter blocked the dialogue. Some providers bill that."""
    TRUNCATED = "truncated"
    """The reply was cut off at max_tokens."""
    UNREADABLE = "unreadable"
    """A billed reply that another attempt cannot fix: a setting has to change."""
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    BAD_BODY = "bad_body"
    """The response breaks the provider's protocol: half sent, not JSON, without a reply."""
    REJECTED = "rejected"
    """A retry is pointless: the provider refused the key, the model's name, the request or the quota."""
    CANCELLED = "cancelled"
    """We ended the call while it was in flight; it may have been billed."""
    INTERRUPTED = "interrupted"
    """The process died while the call was in flight; it may have been billed."""


ANSWERED = (
    AttemptOutcome.OK,
    AttemptOutcome.BAD_REPLY,
    AttemptOutcome.REFUSED,
    AttemptOutcome.TRUNCATED,
    AttemptOutcome.UNREADABLE,
)
"""Outcomes with a reply, which gets billed."""
SCORINGS = (AttemptOutcome.OK, AttemptOutcome.HIT)
"""Outcomes that give scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the usage log.

    Attributes:
        attempt_id: unique to this attempt; sent to the provider as `X-Client-Request-Id`.
        run_id: the judge run that made the attempt.
        ask_key: hash of what was asked: dialogue, instructions, provider, settings and sample index.
        dialogue: SHA-256 of the dialogue.
        sample: which of the K samples, from 0.
        attempt: number of the attempt at this sample in this run, from 1.
        provider: the judge's name.
        spec: version of the instructions.
        model: the version that answered, as the provider reports it; empty without an answer.
        temperature: sampling temperature; None if left to the model.
        outcome: how the attempt ended.
        started: start time, seconds since 1970, UTC.
        latency_ms: from the request to the reply's last byte; for a hit, the look-up.
        status: HTTP status; None without a response.
        request_id: the provider's id of the reply; a hit repeats that of the reply it replays.
        tokens_in: tokens read, as the provider counts; 0 for hits and without reported usage.
        tokens_out: tokens written, likewise.
        cost_usd: at the configured prices; 0 for hits, refused requests and requests that never left this machine;
            None if it cannot be known: a timeout, or no prices.
        billable: whether the provider reported usage for this very attempt.
        reply_sha256: of the reply's text; empty without one. A hit repeats that of the reply it replays.
        scores: by dimension; None if the reply holds none.
        detail: what went wrong, with secrets masked.
    """

    attempt_id: str
    run_id: str
    ask_key: str
    dialogue: str
    sample: int
    attempt: int
    provider: str
    spec: str
    model_asked: str
    model: str
    temperature: float | None
    outcome: AttemptOutcome
    started: float
    latency_ms: float
    status: int | None
    request_id: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    billable: bool
    reply_sha256: str
    scores: Mapping[str, float] | None
    detail: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One stored reply.

    Attributes:
        ask_key: hash of what was asked.
        model: the model version that answered.
        stored: time of storing, seconds since 1970.
        spec: version of the instructions.
        dialogue: SHA-256 of the dialogue.
        sample: which of the K samples.
        outcome: `ok`, or why it holds no scores.
        text: what the model wrote, with secrets masked.
        scores: by dimension; None if the reply holds none.
        detail: why there are no scores.
        request_id: the provider's id of the reply.
    """

    ask_key: str
    model: str
    stored: float
    spec: str
    dialogue: str
    sample: int
    outcome: AttemptOutcome
    text: str
    scores: dict[str, float] | None
    detail: str
    request_id: str
    reply_sha256: str


class CallFailedError(Exception):
    """A call that brought no answer.

    Attributes:
        fault: the kind of failure; an outcome without a reply.
        detail: what the provider said, with secrets masked and cut to a few hundred characters.
        status: the HTTP status; None without a response.
        retry_after: seconds that the provider asks to wait before the next request; None if it does not say.
        of_all: whether the provider refuses every call: the key, the model or the quota.
        sent: whether anything may have reached the provider: what was never sent is not billed.
    """

    def __init__(
        self,
        fault: AttemptOutcome,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        of_all: bool = False,
        sent: bool = True,
    ) -> None:
        super().__init__(f"{fault.value}: {detail}")
        self.of_all = of_all
        self.sent = sent
        self.fault = fault
        self.detail = detail
        self.status = status
        self.retry_after = retry_after


class Provider(Protocol):
    """A source of answers. Use an instance on one event loop only."""

    name: str

    async def ask(self, ask: Ask) -> Answer:
        """Make one call without retrying.

        Raises:
            CallFailedError: if the call brought no answer.
        """
        ...

    async def aclose(self) -> None:
        """Close the provider's connections."""
        ...


MADE_UP = "rc1-test-double"
"""How the model names of RC1's test double begin, which makes its scores up."""


def is_made_up(model: str) -> bool:
    """Whether the scores of a model version are made up: profile prod refuses them."""
    return model.startswith(MADE_UP)
