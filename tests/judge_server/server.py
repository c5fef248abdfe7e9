"""The test double's server: FastAPI in its own thread on 127.0.0.1; it limits, spoils and bills requests."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from tests.judge_server.behaviour import Behaviour, FaultKind
from tests.judge_server.model import Prompt, Reply, fault_of, graded, latency_s, replied
from tests.judge_server.wires import BadRequestError, Gemini, Marks, OpenAI, Wire

HOST = "127.0.0.1"
_OPENAI, _GEMINI = OpenAI(), Gemini()
_SERVER_ERRORS = (500, 502, 503)
_DRIP_S = 0.05
_DRIPPED_BYTES = 1400
"""Least bytes of a dripping body, so that it takes at least 70 seconds."""
_KEPT_ALIVE_S = 3600
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_FILTERED = "The response was filtered due to the prompt triggering the content management policy."
_LIMITED = "Rate limit reached: the test double accepts no more requests now. Please slow down."


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of the server's counters.

    `by_kind` counts requests by outcome: `ok`, a `FaultKind`, `unauthorized` or `bad_request`. An answered request is
    billed even if the client has left; `attempt_ids` come in the order of arrival.
    """

    requests: int
    by_kind: Mapping[str, int]
    answered: int
    billed_by_key: Mapping[str, int]
    attempt_ids: tuple[str, ...]
    open_connections: int
    tokens_in: int
    tokens_out: int


class _Judge:
    """The server's state. Used on one event loop; other threads only set `behaviour` and read `stats`."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.connections: dict[tuple[str, int], asyncio.Transport] = {}
        """Open connections by client address."""
        self._requests = self._answered = self._tokens_in = self._tokens_out = 0
        self._by_kind, self._billed = Counter[str](), Counter[str]()
        self._turns = Counter[tuple[str, str]]()
        self._attempts: list[str] = []

    def stats(self) -> Stats:
        return Stats(
            self._requests, dict(self._by_kind), self._answered, dict(self._billed), tuple(self._attempts),
            len(self.connections), self._tokens_in, self._tokens_out,
        )  # fmt: skip

    async def generate(self, request: Request, wire: Wire) -> Response:
        """Answer a request for a reply."""
        behaviour = self.behaviour
        self._requests += 1
        number = self._requests
        if attempt := request.headers.get("x-client-request-id"):
            self._attempts.append(attempt)
        body = await request.body()
        sent = wire.key(request)
        if behaviour.api_key is not None and sent != behaviour.api_key:
            self._by_kind["unauthorized"] += 1
            return wire.error(401, f"Incorrect API key provided: {sent}.")
        try:
            prompt = wire.prompt(_json_object(body))
        except BadRequestError as error:
            self._by_kind["bad_request"] += 1
            return wire.error(400, str(error))
        key = request.headers.get("idempotency-key")
        return await _Work(self, behaviour, number, key, wire, prompt, request).answer()

    def let_in(self, wire: Wire, fault: FaultKind | None) -> tuple[str, int]:
        """Decide how a request ends; also return how many of this protocol ended so before."""
        kind = fault.value if fault else "ok"
        turn = self._turns[wire.name, kind]
        self._turns[wire.name, kind] += 1
        self._by_kind[kind] += 1
        return kind, turn

    def bill(self, key: str | None, reply: Reply) -> None:
        self._answered += 1
        self._tokens_in += reply.tokens_in
        self._tokens_out += reply.tokens_out
        if key:
            self._billed[key] += 1


class _Work:
    """The handling of one request."""

    def __init__(
        self, judge: _Judge, behaviour: Behaviour, number: int, key: str | None, wire: Wire, prompt: Prompt,
        request: Request,
    ) -> None:  # fmt: skip
        self.judge, self.behaviour, self.number, self.key = judge, behaviour, number, key
        self.wire, self.prompt, self.request = wire, prompt, request

    async def answer(self) -> Response:
        fault = fault_of(self.behaviour, self.number)
        kind, turn = self.judge.let_in(self.wire, fault)
        if kind.startswith("rate_limit"):
            return self._too_many(kind)
        if fault is FaultKind.SLOW_BODY:
            return StreamingResponse(self._dripping(), media_type="application/json")
        return await self._worked_on(fault, turn)

    async def _worked_on(self, fault: FaultKind | None, turn: int) -> Response:
        if fault is FaultKind.RESET:
            return await self._reset()
        if fault is FaultKind.HANG:
            await self._until_left()
            return Response()
        # Continues when the client leaves: a model finishes a reply that it has begun, and bills it.
        await asyncio.sleep(latency_s(self.behaviour, self.number))
        if fault is FaultKind.SERVER_ERROR:
            status = _SERVER_ERRORS[turn % len(_SERVER_ERRORS)]
            message = "The test double had an error while it worked on your request."
            return _page(status) if status == 502 else self.wire.error(status, message)
        if fault is FaultKind.FILTERED:
            return self.wire.error(400, _FILTERED, code="content_filter")
        if fault is FaultKind.EMPTY:
            return self.wire.empty(self._marks)
        reply, response = self._reply(fault, turn)
        half = bytes(response.body[: len(response.body) // 2])
        if fault is FaultKind.HALF_BODY:
            promised = {"Content-Length": str(len(response.body))}
            return StreamingResponse(self._cut_off(half), media_type="application/json", headers=promised)
        if fault is FaultKind.NOT_JSON:
            return _page(200) if turn % 2 else Response(half, media_type="application/json")
        self.judge.bill(self.key, reply)
        return response

    def _reply(self, fault: FaultKind | None, turn: int) -> tuple[Reply, JSONResponse]:
        grades = graded(self.behaviour, self.prompt, self.key or f"request {self.number}")
        reply = replied(self.behaviour, self.prompt, grades, fault, turn)
        return reply, self.wire.reply(reply, self._marks)

    @property
    def _marks(self) -> Marks:
        ids = {"fresh": secrets.token_hex(12), "none": None}
        behaviour = self.behaviour
        return Marks(behaviour.model, ids[behaviour.request_ids], behaviour.usage, self.prompt.by_tool)

    def _too_many(self, kind: str) -> Response:
        wait = self.behaviour.retry_after
        if kind == FaultKind.RATE_LIMIT_RETRY_AFTER and wait is None:
            wait = 1.0
        response = self.wire.error(429, _LIMITED, wait)
        if wait is not None:
            response.headers["Retry-After"] = f"{wait:.15g}"
        return response

    async def _dripping(self) -> AsyncIterator[bytes]:
        """Send the body byte by byte, padded with leading white space: valid JSON for a client that waits."""
        await asyncio.sleep(latency_s(self.behaviour, self.number))
        reply, response = self._reply(None, 0)
        for byte in bytes(response.body).rjust(_DRIPPED_BYTES)[:-1]:
            yield bytes([byte])
            await asyncio.sleep(_DRIP_S)
        self.judge.bill(self.key, reply)
        yield bytes(response.body)[-1:]

    async def _cut_off(self, half: bytes) -> AsyncIterator[bytes]:
        yield half
        if (connection := self._connection()) is not None:
            connection.close()
        await self._until_left()

    async def _reset(self) -> Response:
        """Reset the connection; the client sees a reset instead of a normal close."""
        if (connection := self._connection()) is not None:
            peer = connection.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            connection.abort()
        await self._until_left()
        return Response()

    def _connection(self) -> asyncio.Transport | None:
        client = self.request.client
        return self.judge.connections.get((client.host, client.port)) if client else None

    async def _until_left(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


class JudgeServer:
    """A running test double."""

    def __init__(self, judge: _Judge, port: int) -> None:
        self._judge = judge
        self.port = port

    @property
    def base_url(self) -> str:
        """Address for OpenAI clients."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def gemini_url(self) -> str:
        """Address for `http_options.base_url` of google-genai."""
        return f"http://{HOST}:{self.port}"

    @property
    def behaviour(self) -> Behaviour:
        """The current settings; new ones apply from the next request on."""
        return self._judge.behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour) -> None:
        self._judge.behaviour = behaviour

    def stats(self) -> Stats:
        """Return the counters now, or the final ones once the server has stopped."""
        return self._judge.stats()


@contextmanager
def running(behaviour: Behaviour | None = None) -> Iterator[JudgeServer]:
    """Serve in a separate thread, on a free port, while the block runs; by default a well-behaved judge."""
    judge = _Judge(behaviour or Behaviour())
    listener = socket.create_server((HOST, 0), backlog=1024)
    loop = asyncio.new_event_loop()
    config = uvicorn.Config(
        _app(judge), http=_protocol(judge), ws="none", lifespan="off", log_config=None, log_level="critical",
        access_log=False, server_header=False, timeout_keep_alive=_KEPT_ALIVE_S,
        timeout_graceful_shutdown=0,
    )  # fmt: skip
    server = uvicorn.Server(config)

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(server.serve(sockets=[listener]))

    def stop() -> None:
        server.should_exit = True
        for connection in tuple(judge.connections.values()):
            connection.abort()

    thread = threading.Thread(target=serve, name="judge-server", daemon=True)
    with listener:
        thread.start()
        try:
            yield JudgeServer(judge, listener.getsockname()[1])
        finally:
            loop.call_soon_threadsafe(stop)
            thread.join()


def _app(judge: _Judge) -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.post("/v1/chat/completions")
    async def openai(request: Request) -> Response:
        return await judge.generate(request, _OPENAI)

    @app.post("/{version}/models/{model}:generateContent")
    async def gemini(request: Request) -> Response:
        return await judge.generate(request, _GEMINI)

    return app


def _protocol(judge: _Judge) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, extended so that the judge can count, close and reset connections."""

    class Tracked(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            judge.connections[transport.get_extra_info("peername")] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            del judge.connections[self.transport.get_extra_info("peername")]
            super().connection_lost(exc)

    return Tracked


def _page(status: int) -> Response:
    """Return the HTML page that a gateway sends instead of the response."""
    title = f"{status} {HTTPStatus(status).phrase}"
    body = f"<html>\r\n<head><title>{title}</title></head>\r\n<body><h1>{title}</h1></body>\r\n</html>\r\n"
    return HTMLResponse(body, status)


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise BadRequestError("the body is not a JSON object")
    return found
