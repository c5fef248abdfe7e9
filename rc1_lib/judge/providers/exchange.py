"""One exchange over HTTP: sent once through a provider's SDK, and every way in which it can fail read as a fault."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import anyio
import httpx2

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import Endpoint, Redactor
from rc1_lib.judge.providers.faults import Problem, read_problem, refused

TEST_DOUBLE_HEADER = "x-rc1-test-double"
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""What no connection raises: a refused one, a name that nobody knows. Nothing was sent, so nobody is billed."""
_BROKEN: tuple[type[Exception], ...] = (TimeoutError, httpx2.HTTPError, ssl.SSLError, anyio.EndOfStream)
"""What a connection that fails raises; httpx2 lets the last two through from below."""


class MalformedError(Exception):
    """A response that is not what the protocol promises."""


@dataclass(frozen=True, slots=True)
class Received:
    """A complete response with a success status: its headers, names in lower case, and its body."""

    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Arrival:
    """How far the response of one call came: None until its headers were there."""

    response: httpx2.Response | None = None


_CURRENT: ContextVar[_Arrival] = ContextVar("rc1_provider_arrival")


@functools.cache
def trust() -> ssl.SSLContext:
    """Whom connections trust: the certificates of this machine, read once, since that takes a while."""
    return httpx2.create_ssl_context()


async def _note(response: httpx2.Response) -> None:
    # The SDKs report a response that broke off like a connection that never answered. Only one of them was paid for.
    _CURRENT.get().response = response


class HttpProvider(ABC):
    """A provider with an SDK that sends through httpx2.

    Sub-classes send and read; this class owns the HTTP client, the time limit and the faults.
    """

    raised: ClassVar[tuple[type[Exception], ...]]
    """What the SDK raises for a call that failed, besides what httpx2 raises."""

    def __init__(self, config: JudgeConfig, endpoint: Endpoint) -> None:
        self.name = config.provider
        self._config = config
        self._endpoint = endpoint
        self._redactor = Redactor(endpoint.secret)
        self._caught: tuple[type[Exception], ...] = (*_BROKEN, *self.raised)

        async def keyless(request: httpx2.Request) -> None:
            if endpoint.secret is None:
                for header in ("authorization", "x-goog-api-key"):
                    request.headers.pop(header, None)

        self._http = httpx2.AsyncClient(
            timeout=config.limits.timeout_s,
            verify=trust(),
            # The limiter decides how many calls are under way; a second, silent queue would count as the provider's.
            limits=httpx2.Limits(max_connections=None),
            # A redirect would carry the key to another server.
            follow_redirects=False,
            event_hooks={"request": [keyless], "response": [_note]},
        )

    @abstractmethod
    async def _send(self, ask: Ask) -> Received:
        """Make one request through the SDK."""

    @abstractmethod
    def _read(self, body: Mapping[str, Any]) -> Answer:
        """The answer that a response's JSON holds.

        Raises:
            MalformedError: when it holds none.
            CallFailedError: when it reports a failure under a success status.
        """

    async def ask(self, ask: Ask) -> Answer:
        """Make one call; nothing is retried.

        Raises:
            CallFailedError: when it brought no answer. It has neither cause nor context, since the SDKs' exceptions
                hold requests, and those hold the key.
        """
        arrival = _Arrival()
        token = _CURRENT.set(arrival)
        try:
            # The SDKs' own time-outs watch single reads, so that a server that drips bytes is never late.
            async with asyncio.timeout(self._config.limits.timeout_s):
                received = await self._send(ask)
        except self._caught as error:
            failure = self._failure(error, arrival)
        else:
            return self._answer(received)
        finally:
            _CURRENT.reset(token)
        raise failure

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    def _answer(self, received: Received) -> Answer:
        try:
            body = json.loads(received.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise self._bad_body("the body is no JSON object: " + received.body.decode(errors="replace"))
        if isinstance(body.get("error"), dict):
            # Gateways report failures of the model that they call under HTTP 200.
            problem = read_problem(received.body.decode(errors="replace"))
            if problem.status is not None:
                raise self._refused(problem.status, received.headers, problem)
        try:
            answer = self._read(body)
        except MalformedError as error:
            why = str(error)
        else:
            if answer.finish == "fault":
                said = f"{self._endpoint.host} broke the reply off under HTTP 200: it ended with '{answer.reason}'"
                raise CallFailedError(AttemptOutcome.SERVER_ERROR, self._redactor.line(said), status=200)

            def plain(text: str) -> str:
                return self._redactor.plain(_whole(text))

            return replace(
                answer,
                text=plain(answer.text),
                model=plain(answer.model),
                request_id=plain(answer.request_id),
                reason=plain(answer.reason),
                thoughts=plain(answer.thoughts),
                test_double=TEST_DOUBLE_HEADER in received.headers,
            )
        raise self._bad_body(f"{why}: {received.body.decode(errors='replace')}")

    def _failure(self, error: Exception, arrival: _Arrival) -> CallFailedError:
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        response = arrival.response
        status = None if response is None else response.status_code
        sent = not any(isinstance(found, _NEVER_SENT) for found in (error, cause))
        if any(isinstance(found, TimeoutError | httpx2.TimeoutException) for found in (error, cause)):
            patience = f"{self._config.limits.timeout_s:g} s (judge.limits.timeout_s)"
            late = f"no complete response from {self._endpoint.host} within {patience}"
            return CallFailedError(AttemptOutcome.TIMEOUT, self._redactor.line(late), status=status, sent=sent)
        said = ": ".join(word for word in (type(cause).__name__, str(cause)) if word)
        if response is None:
            lost = f"no response from {self._endpoint.host}: {said}"
            return CallFailedError(AttemptOutcome.CONNECTION, self._redactor.line(lost), sent=sent)
        if response.is_success:
            return self._bad_body(f"the response broke off or cannot be decoded: {said}", response.status_code)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return self._refused(response.status_code, headers, read_problem(_text(response)))

    def _refused(self, status: int, headers: Mapping[str, str], problem: Problem) -> CallFailedError:
        return refused(status, headers, problem, self._config, self._endpoint, self._redactor)

    def _bad_body(self, why: str, status: int = 200) -> CallFailedError:
        return CallFailedError(
            AttemptOutcome.BAD_BODY, self._redactor.line(f"response of {self._endpoint.host}: {why}"), status=status
        )


def _whole(text: str) -> str:
    """Text that can be stored: servers that cut it by UTF-16 units leave half an emoji, which has no bytes."""
    return text.encode(errors="replace").decode()


def _text(response: httpx2.Response) -> str:
    try:
        return response.text
    except httpx2.ResponseNotRead:
        # The body of the error broke off; its status still says which fault it is.
        return ""


def text_of(value: Any) -> str:
    """A text that a protocol leaves optional; empty when it is missing."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int:
    """A number of tokens; 0 when it is missing or no count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
