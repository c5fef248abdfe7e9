"""One call of a provider: what is asked, what comes back, how it can fail, and what is kept of it."""

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
"""A provider's word, in lower case -> how the reply ended, for all protocols.

OpenAI, Azure, Anthropic, Gemini, Mistral, Cohere, DeepSeek and Zhipu document their words; vLLM, SGLang, TGI, Ollama
and OpenRouter show theirs in their source. A word that is not here is `unknown`, and the reply is unscored by that
name: better a judge that has to be looked at than half a reply that counts."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One call.

    Attributes:
        system: the instructions.
        user: the dialogue to be graded, fenced.
        schema: the JSON schema that the reply has to satisfy.
        sampling: how the reply is drawn.
        attempt_id: unique to this attempt; sent along, so that the provider's records can be matched with ours.
        idempotency_key: the same for every attempt at the same reply; a gateway that heeds it bills it once.
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
        model: the model version that the provider says answered; empty when it does not say.
        request_id: the provider's own id of this reply; empty when it gives none.
        tokens_in: tokens read, as the provider counts them; 0 when it reports no usage.
        tokens_out: tokens written, thinking included; 0 when it reports no usage.
        billable: whether the provider reported usage, which is what gets billed.
        finish: `stop`, `length` (cut off), `refusal` (the model or a filter declined), `fault` (the server broke off)
            or `unknown`.
        test_double: whether this came from RC1's own server for tests.
        reason: the provider's own word for `finish`.
        thoughts: thinking that the provider keeps in a field of its own.
    """

    text: str
    model: str
    request_id: str
    tokens_in: int
    tokens_out: int
    billable: bool
    finish: Finish
    test_double: bool = False
    reason: str = ""
    thoughts: str = ""


def finish_of(reason: Any) -> tuple[Finish, str]:
    """How a reply ended, and the word that was given for it.

    A reply without any word counts as whole: simple servers leave it out, and one that is not whole is no JSON.
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
    """A score from the cache: nobody was asked, nothing was paid."""
    BAD_REPLY = "bad_reply"
    """The model answered (and was paid), but not with scores: no JSON, another shape, numbers outside [0, 1]."""
    REFUSED = "refused"
    """The model declined, or a filter declined to let it read this dialogue. Some providers bill that."""
    TRUNCATED = "truncated"
    """The reply was cut off at max_tokens."""
    UNREADABLE = "unreadable"
    """The model answered (and was paid), but in a way that another try cannot mend: a setting has to change."""
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    BAD_BODY = "bad_body"
    """The response is not what the provider's protocol promises: half sent, not JSON, without a reply."""
    REJECTED = "rejected"
    """Asking again is pointless: the key, the model's name, the request or the quota was refused."""
    CANCELLED = "cancelled"
    """Ended from our side while it was under way; it may have been billed."""
    INTERRUPTED = "interrupted"
    """The process died while it was under way; it may have been billed."""


ANSWERED = (
    AttemptOutcome.OK,
    AttemptOutcome.BAD_REPLY,
    AttemptOutcome.REFUSED,
    AttemptOutcome.TRUNCATED,
    AttemptOutcome.UNREADABLE,
)
"""Outcomes in which a model replied, and somebody is paid."""
SCORINGS = (AttemptOutcome.OK, AttemptOutcome.HIT)
"""Outcomes that give scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the usage log.

    Attributes:
        attempt_id: unique to this attempt; the provider was sent it as `X-Client-Request-Id`.
        run_id: the run of the judge that made it.
        ask_key: what was asked: dialogue, instructions, provider, settings and sample index, as a hash.
        dialogue: SHA-256 of the dialogue.
        sample: which of the K samples, from 0.
        attempt: which attempt at it in this run, from 1.
        provider: the judge's name.
        spec: version of the instructions.
        model_asked: the model that was asked for.
        model: the version that the provider says answered; empty when nobody answered.
        temperature: of the sampling; None where it was left to the model.
        outcome: how it ended.
        started: when, seconds since 1970, UTC.
        latency_ms: from the request to the reply's last byte; for a hit, the look-up.
        status: HTTP status, where there was a response.
        request_id: the provider's own id of the reply; of a hit, that of the reply it replays.
        tokens_in: as the provider counts; 0 for hits and where no usage was reported.
        tokens_out: the same.
        cost_usd: at the configured prices; 0 for hits, refused requests and what never left this machine, None where
            nobody can know: a timeout, or no prices.
        billable: whether the provider reported usage for this very attempt.
        reply_sha256: of the reply's text; empty when there is none. A hit repeats that of the reply it replays.
        scores: by dimension, where the reply holds scores.
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
    """One reply as it is stored.

    Attributes:
        ask_key: what was asked.
        model: the version that answered.
        stored: when, seconds since 1970.
        spec: version of the instructions.
        dialogue: SHA-256 of the dialogue.
        sample: which of the K samples.
        outcome: `ok`, or why it holds no scores.
        text: what the model wrote, secrets masked.
        scores: by dimension, None where the reply holds none.
        detail: why there are none.
        request_id: the provider's id of it.
        reply_sha256: of the text.
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
        fault: which kind: one without a reply.
        detail: what the provider said, with secrets masked and cut to a few hundred characters.
        status: the HTTP status, where there was a response.
        retry_after: seconds that the provider asks to wait before anything else is sent; None when it does not say.
        remedies: `KEY=VALUE`, settings under which the provider may take every request, the likeliest first.
        sent: whether anything can have reached the provider: what was never sent is not billed.
    """

    def __init__(
        self,
        fault: AttemptOutcome,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        remedies: tuple[str, ...] = (),
        sent: bool = True,
    ) -> None:
        super().__init__(f"{fault.value}: {detail}")
        self.remedies = remedies
        self.sent = sent
        self.fault = fault
        self.detail = detail
        self.status = status
        self.retry_after = retry_after


class Provider(Protocol):
    """Somebody who answers. One instance lives on one event loop."""

    name: str

    async def ask(self, ask: Ask) -> Answer:
        """Make one call; no retries inside.

        Raises:
            CallFailedError: when it brought no answer.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


MODEL_PREFIX = "rc1-test-double"
TEST_DOUBLE = "TEST DOUBLE"
NOTICE = f"{TEST_DOUBLE}: scores here were made up by RC1's own server for tests; they are no judge's."
"""What is said first to whoever sees such scores."""


def is_test_double(model: str) -> bool:
    """Whether a model version is the test double's."""
    return model.startswith(MODEL_PREFIX)
