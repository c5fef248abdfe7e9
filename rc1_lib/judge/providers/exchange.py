"""One HTTP exchange: send a request once through a provider's SDK, and turn every failure into a `CallFailedError`."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import anyio
import httpx2

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import Endpoint, Redactor
from rc1_lib.judge.providers.faults import Problem, read_problem, refused

TOP_P = 1.0
"""Sent with a temperature: some providers would cut the tail of the distribution by themselves."""
_MOST = 4 * 2**20
"""Bytes of a body, unpacked: more than the longest reply, with its thoughts, has."""
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""Errors before a connection exists: refused, or an unknown host. Nothing was sent, so nothing is billed."""
_BROKEN: tuple[type[Exception], ...] = (TimeoutError, httpx2.HTTPError, ssl.SSLError, anyio.EndOfStream)
"""Errors of a failing connection; httpx2 does not wrap the last two."""


class MalformedError(Exception):
    """A response that breaks the protocol."""


@dataclass(frozen=True, slots=True)
class Received:
    """A complete response with a success status: its headers, names in lower case, and its body."""

    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Arrival:
    """The response of one call; None until its headers have arrived."""

    response: httpx2.Response | None = None


_CURRENT: ContextVar[_Arrival] = ContextVar("rc1_provider_arrival")


@functools.cache
def trust() -> ssl.SSLContext:
    """Return the TLS context with this machine's certificates, read only once because that is slow."""
    return httpx2.create_ssl_context()


async def _note(response: httpx2.Response) -> None:
    # The SDKs report a response that broke off like a connection without a response. Only the first was billed.
    _CURRENT.get().response = response
    response.aiter_bytes = functools.partial(_at_most, response.aiter_bytes)  # type: ignore[method-assign]


async def _at_most(
    read: Callable[[int | None], AsyncGenerator[bytes, None]], chunk_size: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of a body until it is too large for a reply: a packed one could fill the memory."""
    left = _MOST
    async with aclosing(read(chunk_size)) as parts:
        async for part in parts:
            left -= len(part)
            if left < 0:
                raise httpx2.DecodingError(f"it has more than {_MOST:,} bytes")
            yield part


class HttpProvider(ABC):
    """Base class of providers whose SDK sends through httpx2.

    Subclasses send and parse; this class owns the HTTP client, the time limit and the failures.
    """

    raised: ClassVar[tuple[type[Exception], ...]]
    """What the SDK raises for failed calls, in addition to httpx2's errors."""

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
            # The limiter bounds the calls in flight. A second, hidden queue would look like the provider's delay.
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
        """Parse the answer from a response's JSON.

        Raises:
            MalformedError: if it holds none.
            CallFailedError: if it reports a failure under a success status.
        """

    async def ask(self, ask: Ask) -> Answer:
        """Make one call without retrying.

        Raises:
            CallFailedError: if the call brought no answer. It has no cause or context, because the SDKs' exceptions
                hold requests, which hold the key.
        """
        arrival = _Arrival()
        token = _CURRENT.set(arrival)
        try:
            # The SDKs' own timeouts apply to single reads, so a server that drips bytes would never time out.
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
        """Close the connections."""
        await self._http.aclose()

    def _answer(self, received: Received) -> Answer:
        try:
            body = json.loads(received.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise self._bad_body("the body is not a JSON object: " + received.body.decode(errors="replace"))
        if isinstance(body.get("error"), dict):
            # Gateways report failures of the upstream model under HTTP 200.
            problem = read_problem(received.body.decode(errors="replace"))
            if problem.status is not None:
                raise self._refused(problem.status, received.headers, problem)
        try:
            answer = self._read(body)
        except MalformedError as error:
            why = str(error)
        else:
            if answer.finish == "fault":
                message = f"{self._endpoint.host} cut the reply off under HTTP 200: it ended with '{answer.reason}'"
                raise CallFailedError(AttemptOutcome.SERVER_ERROR, self._redactor.line(message), status=200)

            def plain(text: str) -> str:
                return self._redactor.plain(_valid_unicode(text))

            return replace(
                answer,
                text=plain(answer.text),
                model=plain(answer.model),
                request_id=plain(answer.request_id),
                reason=plain(answer.reason),
                thoughts=plain(answer.thoughts),
            )
        raise self._bad_body(f"{why}: {received.body.decode(errors='replace')}")

    def _failure(self, error: Exception, arrival: _Arrival) -> CallFailedError:
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        response = arrival.response
        status = None if response is None else response.status_code
        sent = not any(isinstance(found, _NEVER_SENT) for found in (error, cause))
        if any(isinstance(found, TimeoutError | httpx2.TimeoutException) for found in (error, cause)):
            limit = f"{self._config.limits.timeout_s:g} s (judge.limits.timeout_s)"
            late = f"no complete response from {self._endpoint.host} within {limit}"
            return CallFailedError(AttemptOutcome.TIMEOUT, self._redactor.line(late), status=status, sent=sent)
        message = ": ".join(word for word in (type(cause).__name__, str(cause)) if word)
        if response is None:
            lost = f"no response from {self._endpoint.host}: {message}"
            return CallFailedError(AttemptOutcome.CONNECTION, self._redactor.line(lost), sent=sent)
        if response.is_success:
            return self._bad_body(f"the response broke off or cannot be decoded: {message}", response.status_code)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return self._refused(response.status_code, headers, read_problem(_text(response)))

    def _refused(self, status: int, headers: Mapping[str, str], problem: Problem) -> CallFailedError:
        return refused(status, headers, problem, self._endpoint, self._redactor)

    def _bad_body(self, why: str, status: int = 200) -> CallFailedError:
        return CallFailedError(
            AttemptOutcome.BAD_BODY, self._redactor.line(f"response of {self._endpoint.host}: {why}"), status=status
        )


def _valid_unicode(text: str) -> str:
    """Make text storable: servers that cut it by UTF-16 units leave half an emoji, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def _text(response: httpx2.Response) -> str:
    try:
        return response.text
    except httpx2.ResponseNotRead:
        # The body of the error broke off; the status still identifies the fault.
        return ""


def text_of(value: Any) -> str:
    """Return an optional string of a response; empty if it is missing."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int:
    """Return a token count of a response; 0 if it is missing or invalid."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
