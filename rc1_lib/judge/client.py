"""One reply, however many attempts it takes: permits, deadlines, waits between attempts, and a line for each."""

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
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError, Line, Reply, is_test_double
from rc1_lib.judge.limiter import Limiter, Permit
from rc1_lib.judge.prompt import JudgeSpec, write_ask
from rc1_lib.judge.providers import LIVE, endpoint, model_asked, open_provider
from rc1_lib.judge.reply import BadReplyError, read_answer
from rc1_lib.judge.results import SampleRequest, SampleResult
from rc1_lib.judge.store import InFlight, Store
from rc1_lib.masking import mask, secrets

_T = TypeVar("_T")
_LOG = logging.getLogger("rc1.judge")
_DOUBLE = "this is RC1's own test double, whose scores are made up, and profile prod refuses it"
_SLOW = (
    "; where the server works on few calls at a time, the others wait their time out: judge.limits.concurrency=[1,1] "
    "sends one after the other; judge.limits.timeout_s and deadline_s give each more time"
)
_UNPACED_RPS = 1e6
"""For the local rubric: nobody has to be spared."""
_SETTLE_S = 0.05
"""How often to look whether calls under way have ended and left room in the budget."""
_POLL_S = 0.25
"""How often to look whether another process has got the reply that we both want."""
_FIRST_GAP_S, _LONGEST_GAP_S = 0.5, 20.0
"""Waits between attempts double, with full jitter. The limiter keeps a longer pause that the provider asks for, for
everybody."""


class Stopped(Exception):
    """Asking on is pointless or not allowed; the message says why."""


@dataclass(slots=True)
class _Effort:
    """What has been done for one reply.

    Attributes:
        began: when its first attempt was let through, in monotonic seconds.
        attempts: how many were tried.
        failed: how the last one failed.
        bad: the last reply that could not be read.
    """

    began: float | None = None
    attempts: int = 0
    failed: CallFailedError | None = None
    bad: SampleResult | None = None


class JudgeClient:
    """Asks the provider for the samples of one run, several at a time.

    Attributes:
        config: `judge`.
        store: where replies are looked up and kept.
        limiter: when the next call may be sent.
        spending: what the run may spend, and has spent.
        model: the version whose stored replies count.
        stop: why the run is ending; empty while it goes on.
        test_double: whether RC1's own test double answered.
        remedies: `KEY=VALUE`, settings under which what failed may work, the likeliest first: of the first failure.
    """

    def __init__(
        self, config: JudgeConfig, spec: JudgeSpec, store: Store, spending: Spending, *, refuse_double: bool
    ) -> None:
        """Open the provider; nothing is sent yet.

        Raises:
            ConfigError: when the provider cannot be opened with these settings.
        """
        self.config, self.store, self.spending = config, store, spending
        self.refuse_double = refuse_double
        rps, max_rps = (config.limits.rps, config.limits.max_rps) if config.provider in LIVE else (_UNPACED_RPS,) * 2
        self.limiter = Limiter(rps=rps, max_rps=max_rps, concurrency=config.limits.concurrency)
        self.model, self.stop, self.test_double = "", "", False
        self.remedies: tuple[str, ...] = ()
        self._provider = open_provider(config)
        self._spec, self._endpoint = spec, endpoint(config)
        self._secrets = secrets()
        self._answered = 0  # replies
        self._rejected = 0  # requests refused for good
        self._unanswered = 0  # attempts in a row without a reply, those refused for asking too fast not counted
        self._throttled_since: float | None = None
        self._waiting: set[asyncio.Timeout] = set()

    async def aclose(self) -> None:
        """Close the provider's connections."""
        await self._provider.aclose()

    async def get(self, wanted: SampleRequest, *, fresh: bool) -> SampleResult:
        """The scores of one sample, from another process's reply or by asking.

        Raises:
            Stopped: when the run is ending.
        """
        config = self.config.limits
        blank = write_ask(self._spec, self.config.sampling, wanted.messages, wanted.sample)
        effort = _Effort()
        try:
            for _ in range(config.bad_reply_attempts):
                got = await self._reply(wanted, blank, effort, fresh)
                if got.outcome is not AttemptOutcome.BAD_REPLY:
                    return got
                effort.bad = got
        except CallFailedError as failed:
            return effort.bad or self._unscored(failed)
        except Stopped:
            if effort.bad is not None:
                return effort.bad
            if effort.failed is None:
                raise
            return self._unscored(effort.failed)
        return got

    async def _reply(self, wanted: SampleRequest, blank: Ask, effort: _Effort, fresh: bool) -> SampleResult:
        """A reply, whatever it says, from the store or after as many attempts as may fail."""
        for number in range(self.config.limits.attempts):
            try:
                return await self._attempt(wanted, blank, effort, fresh)
            except CallFailedError as failed:
                effort.failed = failed
            gap = random.uniform(0.0, min(_LONGEST_GAP_S, _FIRST_GAP_S * 2.0**number))
            if number + 1 < self.config.limits.attempts and self._is_worth_a_retry(effort, gap):
                await self._unless_stopped(asyncio.sleep(gap))
            else:
                break
        assert effort.failed is not None, "there is at least one attempt"
        raise effort.failed

    # ---- one attempt ----

    async def _attempt(self, wanted: SampleRequest, blank: Ask, effort: _Effort, fresh: bool) -> SampleResult:
        effort.attempts += 1
        while True:
            async with AsyncExitStack() as stack:
                await self._unless_stopped(self._affordable(blank))
                permit = await self._unless_stopped(stack.enter_async_context(self.limiter.slot()))
                left = self._time_left(effort)
                ask = replace(blank, attempt_id=uuid.uuid4().hex, idempotency_key=self._idempotency_key(wanted, fresh))
                line = self.line(wanted, ask, effort.attempts)
                reserved = self._reserve(ask)
                if reserved is None:
                    continue
                found, looked_up_ms = self._begin(line, fresh, reserved)
                if found is None:
                    return await self._send(line, ask, permit, left, reserved)
            if isinstance(found, Reply):
                self._meet_double(is_test_double(found.model))
                got = SampleResult.of(found)
                if found.scores is not None:
                    self.store.replayed([replayed(line, found, looked_up_ms)])
                return got
            while self.store.is_under_way(wanted.key):  # without a place: another process has it under way
                await self._unless_stopped(asyncio.sleep(_POLL_S))

    def _begin(self, line: Line, fresh: bool, reserved: float) -> tuple[Reply | InFlight | None, float]:
        """Note the attempt, or find that it is not needed; and how long the look-up took, in milliseconds."""
        start = time.perf_counter()
        try:
            found = self.store.begin(
                line, endpoint=self._endpoint, fresh=fresh, bad_attempts=self.config.limits.bad_reply_attempts
            )
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
        except CallFailedError as failed:
            taken = time.perf_counter() - start
            self._keep_failure(line, failed, permit, taken, reserved)
            raise
        except TimeoutError:
            taken = time.perf_counter() - start
            late = CallFailedError(AttemptOutcome.TIMEOUT, f"no whole reply within {self._bound(left)}")
            self._keep_failure(line, late, permit, taken, reserved)
            raise late from None
        except BaseException:
            taken = time.perf_counter() - start
            self._end(
                replace(line, outcome=AttemptOutcome.CANCELLED, latency_ms=taken * 1000, detail="cancelled"), reserved
            )
            raise
        taken = time.perf_counter() - start
        permit.answered(taken)
        return self._keep_answer(line, ask, answer, taken, reserved)

    def _keep_answer(self, line: Line, ask: Ask, answer: Answer, taken: float, reserved: float) -> SampleResult:
        answer = _storable(answer)
        text = mask(answer.text, self._secrets)
        line = replace(
            line, model=answer.model, request_id=answer.request_id, latency_ms=taken * 1000, status=200,
            tokens_in=answer.tokens_in, tokens_out=answer.tokens_out, billable=answer.billable,
            cost_usd=self._cost(answer), reply_sha256=hashlib.sha256(answer.text.encode()).hexdigest(),
        )  # fmt: skip
        if answer.test_double and self.refuse_double:
            self._end(replace(line, outcome=AttemptOutcome.REJECTED, detail=_DOUBLE), reserved)
        self._meet_double(answer.test_double)
        scores, outcome, detail = self._read(answer, ask)
        self._answered += 1
        self._unanswered = 0
        self._throttled_since = None
        line = replace(line, outcome=outcome, scores=scores, detail=mask(_whole(detail), self._secrets))
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
            self.remedies = self.remedies or error.remedies
            return None, error.outcome, f"the reply {error}"

    def _keep_failure(self, line: Line, failed: CallFailedError, permit: Permit, taken: float, reserved: float) -> None:
        unbilled = failed.fault in (AttemptOutcome.RATE_LIMITED, AttemptOutcome.REJECTED) or (failed.status or 0) >= 500
        unbilled |= not failed.sent
        refused = failed.fault is AttemptOutcome.REFUSED
        self.remedies = self.remedies or failed.remedies
        self._end(
            replace(
                line,
                outcome=failed.fault,
                model=self.model if refused else "",
                status=failed.status,
                latency_ms=taken * 1000,
                cost_usd=0.0 if unbilled else None,
                detail=mask(_whole(failed.detail), self._secrets),
            ),
            reserved,
        )
        if failed.fault is AttemptOutcome.RATE_LIMITED:
            permit.throttled(failed.retry_after)
            self._note_throttling()
        elif refused:
            permit.answered(taken)
            return
        else:
            permit.failed(failed.retry_after, late=failed.fault is AttemptOutcome.TIMEOUT)
        if failed.fault is AttemptOutcome.REJECTED:
            self._note_rejection(failed)
        elif failed.fault is not AttemptOutcome.RATE_LIMITED:
            self._note_silence(failed)
        if failed.retry_after is not None and failed.retry_after > self.config.limits.max_wait_s:
            self.halt(
                f"the provider asks to wait {failed.retry_after:.0f} s, more than judge.limits.max_wait_s "
                f"({self.config.limits.max_wait_s:g}); run again later, paid replies are kept"
            )

    def _note_throttling(self) -> None:
        """Refusals without a reply between them: a provider that lets nothing through at all."""
        now, most = time.monotonic(), self.config.limits.max_wait_s
        self._throttled_since = self._throttled_since or now
        if now - self._throttled_since > most:
            self.halt(
                f"the provider has rate-limited every call for {now - self._throttled_since:.0f} s, more than "
                f"judge.limits.max_wait_s ({most:g}); run again later, paid replies are kept"
            )

    def _note_silence(self, failed: CallFailedError) -> None:
        """A provider that is down fails everybody: as many attempts in a row as all places can make for one reply."""
        self._unanswered += 1
        limits = self.config.limits
        if self._unanswered >= limits.attempts * limits.concurrency[1]:
            said = f"{self._unanswered} attempts in a row brought no reply: {mask(str(failed), self._secrets)}"
            self.halt(said + _SLOW * (failed.fault is AttemptOutcome.TIMEOUT))

    def _note_rejection(self, failed: CallFailedError) -> None:
        """A refused key, model or quota concerns every call; another refused request may concern this dialogue only."""
        self._rejected += 1
        of_all = failed.status in (401, 402, 403, 404, 429) or bool(failed.remedies and not self._answered)
        if of_all or (not self._answered and self._rejected >= self.config.limits.concurrency[1]):
            self.halt(f"the provider refuses: {mask(failed.detail, self._secrets)}")

    def _end(self, line: Line, reserved: float, text: str = "") -> None:
        self.spending.settle(reserved, line.cost_usd)
        try:
            self.store.end(line, endpoint=self._endpoint, text=text)
        except RC1Error as error:
            self.halt(str(error))  # the others' calls end as they will; none is begun
            raise Stopped(str(error)) from None

    def _meet_double(self, test_double: bool) -> None:
        self.test_double |= test_double
        if test_double and self.refuse_double:
            self.halt(_DOUBLE)
            raise Stopped(_DOUBLE)

    def _cost(self, answer: Answer) -> float | None:
        if answer.billable:
            return self.spending.cost(answer.tokens_in, answer.tokens_out)
        return 0.0 if self.config.provider == "rubric" else None

    # ---- around it ----

    def line(self, wanted: SampleRequest, ask: Ask | None = None, number: int = 1) -> Line:
        """The line of an attempt that begins now, or of a replay: what is known before anything comes back."""
        return Line(
            attempt_id=ask.attempt_id if ask else uuid.uuid4().hex,
            run_id=self.store.run_id, ask_key=wanted.key, dialogue=wanted.dialogue,
            sample=wanted.sample, attempt=number, provider=self.config.provider, spec=self._spec.spec,
            model_asked=model_asked(self.config), model="", temperature=self.config.sampling.temperature,
            outcome=AttemptOutcome.INTERRUPTED, started=self.store.now(), latency_ms=0.0, status=None, request_id="",
            tokens_in=0, tokens_out=0, cost_usd=None, billable=False, reply_sha256="", scores=None, detail="",
        )  # fmt: skip

    def _idempotency_key(self, wanted: SampleRequest, fresh: bool) -> str:
        """The same until a reply has come, in this process and the next; then another, or the old reply would come."""
        own = (
            f"{self.store.id}/{wanted.key}/{self.store.replies_so_far(wanted.key)}/{self.store.run_id if fresh else ''}"
        )
        return hashlib.sha256(own.encode()).hexdigest()[:40]

    def halt(self, why: str) -> None:
        """End the run, once. Those who wait to send are woken, since the provider's pause may last for hours."""
        if not self.stop:
            self.stop = why
            for waiting in self._waiting:
                waiting.reschedule(0.0)

    async def _unless_stopped(self, wait: Awaitable[_T]) -> _T:
        """Wait for leave to send, as long as the run goes on.

        Raises:
            Stopped: when it ends before.
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
        """Wait while only calls under way keep this one from the budget: they may cost less than their most."""
        while self.spending.has_to_wait(ask):
            await asyncio.sleep(_SETTLE_S)

    def _reserve(self, ask: Ask) -> float | None:
        """Set aside what a call can cost; None when that has to wait for others to end.

        Raises:
            Stopped: when the run is ending, or its budget is spent.
        """
        if self.stop:
            raise Stopped(self.stop)
        if spent := self.spending.spent(ask):
            self.halt(spent)
            raise Stopped(spent)
        return self.spending.reserve(ask)

    def _unscored(self, failed: CallFailedError) -> SampleResult:
        return SampleResult(None, failed.fault, mask(str(failed), self._secrets), "")

    def _time_left(self, effort: _Effort) -> float:
        """Seconds until the deadline, which starts with the first attempt's permit: queueing is no fault of a reply."""
        now = time.monotonic()
        if effort.began is None:
            effort.began = now
        left = effort.began + self.config.limits.deadline_s - now
        if left <= 0:
            raise CallFailedError(AttemptOutcome.TIMEOUT, f"no whole reply within {self._bound(left)}")
        return left

    def _is_worth_a_retry(self, effort: _Effort, gap: float) -> bool:
        """Not where another attempt cannot help, the run is ending, or the wait would end after the deadline."""
        final = effort.failed is None or effort.failed.fault in (AttemptOutcome.REJECTED, AttemptOutcome.REFUSED)
        wait = max(gap, self.limiter.paused_for())
        late = effort.began is not None and time.monotonic() + wait > effort.began + self.config.limits.deadline_s
        return not (final or late or self.stop)

    def _bound(self, left: float) -> str:
        """Which limit an attempt that had so many seconds left ran into; reasons in the same words are counted."""
        limits = self.config.limits
        name, bound = ("deadline", limits.deadline_s) if left < limits.timeout_s else ("timeout", limits.timeout_s)
        return f"{bound:g} s (judge.limits.{name}_s)"


def replayed(line: Line, reply: Reply, latency_ms: float) -> Line:
    """The log line of a score that comes from the store."""
    return replace(
        line, outcome=AttemptOutcome.HIT, model=reply.model, request_id=reply.request_id,
        reply_sha256=reply.reply_sha256, scores=reply.scores, cost_usd=0.0, billable=False, latency_ms=latency_ms,
        detail="",
    )  # fmt: skip


_MOST_TOKENS = 2**53
"""More than that is no count of tokens, and no column holds it."""


def _storable(answer: Answer) -> Answer:
    """An answer that can be written down: half a surrogate pair is no text, and an absurd usage is none."""
    counted = 0 <= answer.tokens_in <= _MOST_TOKENS and 0 <= answer.tokens_out <= _MOST_TOKENS
    return replace(
        answer,
        text=_whole(answer.text),
        model=_whole(answer.model),
        request_id=_whole(answer.request_id),
        tokens_in=answer.tokens_in if counted else 0,
        tokens_out=answer.tokens_out if counted else 0,
        billable=answer.billable and counted,
    )


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
