"""Get one reply in as many attempts as it takes: permits, deadlines, back-off, and a log line for each attempt."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
import uuid
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import RC1Error
from rc1_lib.judge.budget import Spending
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError, Line, Reply, is_made_up
from rc1_lib.judge.limiter import Limiter, Permit
from rc1_lib.judge.prompt import JudgeSpec, write_ask
from rc1_lib.judge.providers import LIVE, endpoint, model_asked, open_provider
from rc1_lib.judge.reply import BadReplyError, read_answer
from rc1_lib.judge.results import SampleRequest, SampleResult
from rc1_lib.judge.store import InFlight, Store
from rc1_lib.masking import mask, secrets

_T = TypeVar("_T")
_LOG = logging.getLogger("rc1.judge")
_REFUSED = "this is RC1's own test double, whose scores are made up, and profile prod refuses it"
_SLOW = (
    "; if the server works on few calls at a time, the others time out while they queue: set "
    "judge.limits.concurrency=[1,1] to send one call at a time, or raise judge.limits.timeout_s"
)
MOST_RPS = 50.0
"""The fastest pace to which the limiter rises, unless it begins faster: enough for 8 requests in flight."""
DEADLINE_S = 180.0
"""Seconds for one reply, including all attempts and waits, so that a dead call does not hold up a run of thousands."""
MAX_WAIT_S = 300.0
"""If a provider asks for a longer pause, the run ends, since a person should know; paid scores are kept."""
ATTEMPTS = 6
"""Attempts at one reply; the waits between them double."""
BAD_REPLY_ATTEMPTS = 2
"""Paid attempts at a reply that cannot be parsed, in all runs: a judge that fails twice usually fails again."""
_UNPACED_RPS = 1e6
"""The pace of the local rubric, which needs no rate limit."""
_SETTLE_S = 0.05
"""How often to check whether calls in flight have ended and left room in the budget."""
_POLL_S = 0.25
"""How often to check whether another process has received the reply that both want."""
_FIRST_GAP_S, _LONGEST_GAP_S = 0.5, 20.0
"""Waits between attempts double, with full jitter. If the provider asks for a longer pause, the limiter applies it to
all calls."""


class Stopped(Exception):
    """No further call may be sent; the message says why."""


@dataclass(slots=True)
class _AttemptState:
    """What has been done so far to get one reply.

    Attributes:
        began: when the limiter let the first attempt through, in monotonic seconds.
        failure: how the last attempt failed.
        bad: the last reply that could not be read.
    """

    began: float | None = None
    attempts: int = 0
    failure: CallFailedError | None = None
    bad: SampleResult | None = None


class JudgeClient:
    """Asks the provider for the samples of one run, several at a time.

    Attributes:
        config: `judge`.
        store: where replies are looked up and kept.
        limiter: decides when the next call may be sent.
        spending: what the run may spend and has spent.
        model: the model version whose stored replies count.
        stop: why the run is ending; empty while it continues.
    """

    def __init__(
        self, config: JudgeConfig, spec: JudgeSpec, store: Store, spending: Spending, *, only_real: bool
    ) -> None:
        """Open the provider without sending anything.

        Raises:
            ConfigError: if the provider cannot be opened with these settings.
        """
        self.config, self.store, self.spending = config, store, spending
        self.only_real = only_real
        rps = config.limits.rps if config.provider in LIVE else _UNPACED_RPS
        self.limiter = Limiter(rps=rps, max_rps=max(rps, MOST_RPS), concurrency=config.limits.concurrency)
        self.model, self.stop = "", ""
        self._provider = open_provider(config)
        self._spec, self._endpoint = spec, endpoint(config)
        self._secrets = secrets()
        self.stored = 0  # scores of the same dialogues from before: as many refusals may be of single dialogues
        self._answered = 0
        self._rejected = 0  # requests refused permanently
        self._unanswered = 0  # consecutive attempts without a reply, not counting rate-limited ones
        self._throttled_since: float | None = None
        self._waiting: set[asyncio.Timeout] = set()

    async def aclose(self) -> None:
        """Close the provider's connections."""
        await self._provider.aclose()

    async def get(self, request: SampleRequest, *, fresh: bool) -> SampleResult:
        """Return the scores of one sample, from a stored reply or by asking the provider.

        Raises:
            Stopped: if the run is ending.
        """
        template = write_ask(self._spec, self.config.sampling, request.messages, request.sample)
        state = _AttemptState()
        try:
            for _ in range(BAD_REPLY_ATTEMPTS):
                got = await self._reply(request, template, state, fresh)
                if got.outcome is not AttemptOutcome.BAD_REPLY:
                    return got
                state.bad = got
        except CallFailedError as failure:
            return state.bad or self._unscored(failure)
        except Stopped:
            if state.bad is not None:
                return state.bad
            if state.failure is None:
                raise
            return self._unscored(state.failure)
        return got

    async def _reply(self, request: SampleRequest, template: Ask, state: _AttemptState, fresh: bool) -> SampleResult:
        """Return a reply, readable or not, retrying failed attempts up to `ATTEMPTS`."""
        for number in range(ATTEMPTS):
            try:
                return await self._attempt(request, template, state, fresh)
            except CallFailedError as failure:
                state.failure = failure
            gap = random.uniform(0.0, min(_LONGEST_GAP_S, _FIRST_GAP_S * 2.0**number))
            if number + 1 < ATTEMPTS and self._should_retry(state, gap):
                await self._unless_stopped(asyncio.sleep(gap))
            else:
                break
        assert state.failure is not None, "there is at least one attempt"
        raise state.failure

    # ---- one attempt ----

    async def _attempt(self, request: SampleRequest, template: Ask, state: _AttemptState, fresh: bool) -> SampleResult:
        state.attempts += 1
        while True:
            if self.stop:  # what was awaited before knows; what begins now would wait for a slot as long as a pause
                raise Stopped(self.stop)
            async with AsyncExitStack() as stack:
                await self._unless_stopped(self._affordable(template))
                permit = await self._unless_stopped(stack.enter_async_context(self.limiter.slot()))
                left = self._time_left(state)
                ask = replace(
                    template, attempt_id=uuid.uuid4().hex, idempotency_key=self._idempotency_key(request, fresh)
                )
                line = self.line(request, ask, state.attempts)
                reserved = self._reserve(ask)
                if reserved is None:
                    continue
                found, looked_up_ms = self._begin(line, fresh, reserved)
                if found is None:
                    return await self._send(line, ask, permit, left, reserved)
            if isinstance(found, Reply):
                self._check_real(found.model)
                got = SampleResult.of(found)
                if found.scores is not None:
                    self.store.log_replays([replay_line(line, found, looked_up_ms)])
                return got
            while self.store.is_under_way(request.key):  # another process is asking; wait without holding a slot
                await self._unless_stopped(asyncio.sleep(_POLL_S))

    def _begin(self, line: Line, fresh: bool, reserved: float) -> tuple[Reply | InFlight | None, float]:
        """Record the attempt, or find out that it is not needed; also return the look-up time in milliseconds."""
        start = time.perf_counter()
        try:
            found = self.store.begin(line, endpoint=self._endpoint, fresh=fresh, bad_attempts=BAD_REPLY_ATTEMPTS)
        except RC1Error as error:
            self.spending.give_back(reserved)
            self.halt(str(error))
            raise Stopped(str(error)) from None
        if found is not None:
            self.spending.give_back(reserved)
        return found, 1000 * (time.perf_counter() - start)

    async def _send(self, line: Line, ask: Ask, permit: Permit, left: float, reserved: float) -> SampleResult:
        start = time.perf_counter()
        try:
            async with asyncio.timeout(min(left, self.config.limits.timeout_s)):
                answer = await self._provider.ask(ask)
        except CallFailedError as failure:
            elapsed = time.perf_counter() - start
            self._keep_failure(line, failure, permit, elapsed, reserved)
            raise
        except TimeoutError:
            elapsed = time.perf_counter() - start
            late = CallFailedError(AttemptOutcome.TIMEOUT, f"no whole reply within {self._limit_in_words(left)}")
            self._keep_failure(line, late, permit, elapsed, reserved)
            raise late from None
        except BaseException:
            elapsed = time.perf_counter() - start
            self._end(
                replace(line, outcome=AttemptOutcome.CANCELLED, latency_ms=elapsed * 1000, detail="cancelled"), reserved
            )
            raise
        elapsed = time.perf_counter() - start
        permit.answered(elapsed)
        return self._keep_answer(line, ask, answer, elapsed, reserved)

    def _keep_answer(self, line: Line, ask: Ask, answer: Answer, elapsed: float, reserved: float) -> SampleResult:
        answer = _storable(answer)
        said = answer.text if answer.text.strip("\ufeff \t\r\n") else answer.thoughts  # what is scored
        text = mask(said, self._secrets)
        line = replace(
            line, model=answer.model, request_id=answer.request_id, latency_ms=elapsed * 1000, status=200,
            tokens_in=answer.tokens_in, tokens_out=answer.tokens_out, billable=answer.billable,
            cost_usd=self._cost(answer), reply_sha256=hashlib.sha256(said.encode()).hexdigest(),
        )  # fmt: skip
        if self.only_real and is_made_up(answer.model):
            self._end(replace(line, outcome=AttemptOutcome.REJECTED, detail=_REFUSED), reserved)
        self._check_real(answer.model)
        scores, outcome, detail = self._read(answer, ask)
        self._answered += 1
        self._unanswered = 0
        self._throttled_since = None
        line = replace(line, outcome=outcome, scores=scores, detail=mask(_valid_unicode(detail), self._secrets))
        self._end(line, reserved, text)
        if self.model != answer.model:
            if self.model:
                _LOG.warning("the judge's model changed from %s to %s", self.model, answer.model)
            self.model = answer.model
        return SampleResult(scores, outcome, line.detail, answer.model, text)

    def _read(self, answer: Answer, ask: Ask) -> tuple[dict[str, float] | None, AttemptOutcome, str]:
        try:
            return read_answer(answer, ask, self._spec.dimensions, self.config.channel), AttemptOutcome.OK, ""
        except BadReplyError as error:
            return None, error.outcome, f"the reply {error}"

    def _keep_failure(
        self, line: Line, failure: CallFailedError, permit: Permit, elapsed: float, reserved: float
    ) -> None:
        unbilled = (
            failure.fault in (AttemptOutcome.RATE_LIMITED, AttemptOutcome.REJECTED) or (failure.status or 0) >= 500
        )
        unbilled |= not failure.sent or self.config.provider not in LIVE
        refused = failure.fault is AttemptOutcome.REFUSED
        self._end(
            replace(
                line,
                outcome=failure.fault,
                model=self.model if refused else "",
                status=failure.status,
                latency_ms=elapsed * 1000,
                cost_usd=0.0 if unbilled else None,
                detail=mask(_valid_unicode(failure.detail), self._secrets),
            ),
            reserved,
        )
        if failure.fault is AttemptOutcome.RATE_LIMITED:
            permit.throttled(failure.retry_after)
            self._note_throttling(failure)
        elif refused:
            permit.answered(elapsed)
            return
        else:
            permit.failed(failure.retry_after, late=failure.fault is AttemptOutcome.TIMEOUT)
        if failure.fault is AttemptOutcome.REJECTED:
            self._note_rejection(failure)
        elif failure.fault is not AttemptOutcome.RATE_LIMITED:
            self._note_silence(failure)
        if failure.retry_after is not None and failure.retry_after > MAX_WAIT_S:
            self.halt(
                f"the provider asks to wait {failure.retry_after:.0f} s, more than {MAX_WAIT_S:g}; run again later, "
                f"paid replies are kept. It says: {mask(failure.detail, self._secrets)}"
            )

    def _note_throttling(self, failure: CallFailedError) -> None:
        """Stop the run if the provider has rate-limited every call for too long."""
        now = time.monotonic()
        self._throttled_since = self._throttled_since or now
        if now - self._throttled_since > MAX_WAIT_S:
            self.halt(
                f"the provider has rate-limited every call for {now - self._throttled_since:.0f} s, more than "
                f"{MAX_WAIT_S:g}; run again later, paid replies are kept. It says: "
                f"{mask(failure.detail, self._secrets)}"
            )

    def _note_silence(self, failure: CallFailedError) -> None:
        """Stop the run if the provider seems down: every concurrent call has used up its attempts without a reply."""
        self._unanswered += 1
        if self._unanswered >= ATTEMPTS * self.config.limits.concurrency[1]:
            reason = f"{self._unanswered} attempts in a row brought no reply: {mask(str(failure), self._secrets)}"
            self.halt(reason + _SLOW * (failure.fault is AttemptOutcome.TIMEOUT))

    def _note_rejection(self, failure: CallFailedError) -> None:
        """Stop the run if the refusal affects every call (key, model, quota), not just this dialogue."""
        self._rejected += 1
        expected = self.config.limits.concurrency[1] + self.stored
        if failure.of_all or (not self._answered and self._rejected >= expected):
            self.halt(f"the provider refuses: {mask(failure.detail, self._secrets)}")

    def _end(self, line: Line, reserved: float, text: str = "") -> None:
        self.spending.settle(reserved, line.cost_usd)
        try:
            self.store.end(line, endpoint=self._endpoint, text=text)
        except RC1Error as error:
            self.halt(str(error))  # calls in flight may still end; no new one starts
            raise Stopped(str(error)) from None

    def _check_real(self, model: str) -> None:
        if self.only_real and is_made_up(model):
            self.halt(_REFUSED)
            raise Stopped(_REFUSED)

    def _cost(self, answer: Answer) -> float | None:
        if self.config.provider not in LIVE:
            return 0.0  # whatever usage it reports
        return self.spending.cost(answer.tokens_in, answer.tokens_out) if answer.billable else None

    # ---- bookkeeping ----

    def line(self, request: SampleRequest, ask: Ask | None = None, number: int = 1) -> Line:
        """Start the log line of an attempt or a replay, with what is known before the reply."""
        return Line(
            attempt_id=ask.attempt_id if ask else uuid.uuid4().hex,
            run_id=self.store.run_id, ask_key=request.key, dialogue=request.dialogue,
            sample=request.sample, attempt=number, provider=self.config.provider, spec=self._spec.spec,
            model_asked=model_asked(self.config), model="", temperature=self.config.sampling.temperature,
            outcome=AttemptOutcome.INTERRUPTED, started=self.store.now(), latency_ms=0.0, status=None, request_id="",
            tokens_in=0, tokens_out=0, cost_usd=None, billable=False, reply_sha256="", scores=None, detail="",
        )  # fmt: skip

    def _idempotency_key(self, request: SampleRequest, fresh: bool) -> str:
        """Return a key that stays the same, across processes, until a reply arrives.

        It then changes: a gateway that honours the old key would return the old reply.
        """
        replies = self.store.replies_so_far(request.key)
        own = f"{self.store.id}/{request.key}/{replies}/{self.store.run_id if fresh else ''}"
        return hashlib.sha256(own.encode()).hexdigest()[:40]

    def halt(self, why: str) -> None:
        """End the run, keeping the first reason. Wakes all waiting calls, since a provider's pause may last hours."""
        if not self.stop:
            self.stop = why
            for waiting in self._waiting:
                waiting.reschedule(0.0)

    async def _unless_stopped(self, wait: Awaitable[_T]) -> _T:
        """Await `wait`, but give up as soon as the run ends.

        Raises:
            Stopped: if the run ends first.
        """
        try:
            async with asyncio.timeout(None) as waiting:
                self._waiting.add(waiting)
                try:
                    return await wait
                finally:
                    self._waiting.discard(waiting)
        except TimeoutError:
            raise Stopped(self.stop) from None

    async def _affordable(self, ask: Ask) -> None:
        """Wait while only the amounts set aside for calls in flight keep this call out of the budget."""
        while self.spending.has_to_wait(ask):
            await asyncio.sleep(_SETTLE_S)

    def _reserve(self, ask: Ask) -> float | None:
        """Set aside what a call can cost; None if it has to wait for calls in flight to end.

        Raises:
            Stopped: if the run is ending or its budget is spent.
        """
        if self.stop:
            raise Stopped(self.stop)
        if spent := self.spending.spent(ask):
            self.halt(spent)
            raise Stopped(spent)
        return self.spending.reserve(ask)

    def _unscored(self, failure: CallFailedError) -> SampleResult:
        return SampleResult(None, failure.fault, mask(str(failure), self._secrets), "")

    def _time_left(self, state: _AttemptState) -> float:
        """Return the seconds until the deadline, which starts with the first permit: queueing does not count."""
        now = time.monotonic()
        if state.began is None:
            state.began = now
        left = state.began + DEADLINE_S - now
        if left <= 0:
            before = "" if state.failure is None else f"; the attempt before: {state.failure.detail}"
            raise CallFailedError(AttemptOutcome.TIMEOUT, f"no whole reply within {self._limit_in_words(left)}{before}")
        return left

    def _should_retry(self, state: _AttemptState, gap: float) -> bool:
        """Whether another attempt can help, the run continues, and the wait ends before the deadline."""
        final = state.failure is None or state.failure.fault in (AttemptOutcome.REJECTED, AttemptOutcome.REFUSED)
        wait = max(gap, self.limiter.paused_for())
        late = state.began is not None and time.monotonic() + wait > state.began + DEADLINE_S
        return not (final or late or self.stop)

    def _limit_in_words(self, left: float) -> str:
        """Name the limit that an attempt with `left` seconds ran into. Equal wording lets equal reasons be counted."""
        timeout = self.config.limits.timeout_s
        return f"{DEADLINE_S:g} s" if left < timeout else f"{timeout:g} s (judge.limits.timeout_s)"


def replay_line(line: Line, reply: Reply, latency_ms: float) -> Line:
    """Return the log line of a score that comes from the store."""
    return replace(
        line, outcome=AttemptOutcome.HIT, model=reply.model, request_id=reply.request_id,
        reply_sha256=reply.reply_sha256, scores=reply.scores, cost_usd=0.0, billable=False, latency_ms=latency_ms,
        detail="",
    )  # fmt: skip


_MOST_TOKENS = 2**53
"""A larger number is not a plausible token count, and no column holds it."""


def _storable(answer: Answer) -> Answer:
    """Make an answer storable: escape lone surrogates, and drop token counts that are absurd."""
    counted = 0 <= answer.tokens_in <= _MOST_TOKENS and 0 <= answer.tokens_out <= _MOST_TOKENS
    return replace(
        answer,
        text=_valid_unicode(answer.text),
        thoughts=_valid_unicode(answer.thoughts),
        model=_valid_unicode(answer.model),
        request_id=_valid_unicode(answer.request_id),
        tokens_in=answer.tokens_in if counted else 0,
        tokens_out=answer.tokens_out if counted else 0,
        billable=answer.billable and counted,
    )


def _valid_unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
