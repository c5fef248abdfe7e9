"""What the server does with a request: lets it in or not, works on it, spoils the answer where due, and bills it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import h11

from rc1_lib.testing.judge_server.behaviour import Behaviour, FaultKind
from rc1_lib.testing.judge_server.connection import Connection, Request, Response
from rc1_lib.testing.judge_server.faults import SERVER_ERRORS, drawn, latency_s, replied
from rc1_lib.testing.judge_server.grading import graded
from rc1_lib.testing.judge_server.limits import Slots, TokenBucket
from rc1_lib.testing.judge_server.replies import Replies
from rc1_lib.testing.judge_server.stats import Tally
from rc1_lib.testing.judge_server.wire import BadRequestError, Marks, Prompt, Wire, header, seconds
from rc1_lib.testing.judge_server.wire_gemini import Gemini
from rc1_lib.testing.judge_server.wire_openai import OpenAI

_OPENAI, _GEMINI = OpenAI(), Gemini()
_MODELS = re.compile(r"/v1(beta|alpha)?/models")
_GENERATE = re.compile(r"/v1(beta|alpha)?/models/[^/]+:generateContent")
_DRIP_S = 0.05
_DRIPPED_BYTES = 1400
"""A body that drips has at least this many bytes: 70 seconds."""
_SAME_ID = "rc1testdouble"
_LIMITED = "Rate limit reached: the test double takes no more requests now. Please slow down."


@dataclass(frozen=True, slots=True)
class _Work:
    """A request that was let in."""

    number: int
    key: str | None
    wire: Wire
    prompt: Prompt
    behaviour: Behaviour
    fault: FaultKind | None
    turn: int

    @property
    def marks(self) -> Marks:
        ids = {"fresh": secrets.token_hex(12), "same": _SAME_ID, "none": None}
        return Marks(self.behaviour.model, ids[self.behaviour.request_ids], self.behaviour.usage)


class _Hold:
    """What a request occupies while it is worked on: a slot, and its idempotency key. It is let go of once."""

    def __init__(self, slots: Slots, replies: Replies, key: str | None) -> None:
        self._slots, self._replies, self._key = slots, replies, key
        self._in_work = False

    def enter(self) -> int:
        self._in_work = True
        self._slots.taken += 1
        return self._slots.taken

    def let_go(self, response: Response | None = None) -> None:
        """Free the slot; keep the reply for those who ask with the same key."""
        if self._in_work:
            self._in_work = False
            self._slots.taken -= 1
        if self._key is not None:
            key, self._key = self._key, None
            self._replies.settle(key, response)


class Service:
    """The judge behind the connections. Lives on one event loop; `behaviour` and `tally` are shared with other threads.

    Attributes:
        behaviour: how it behaves from the next request on.
        tally: its count.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        """Start with nothing counted, stored or in work."""
        self.behaviour = behaviour
        self.tally = Tally()
        self._bucket, self._slots, self._replies = TokenBucket(), Slots(), Replies()
        self._turns: Counter[tuple[str, str]] = Counter()

    async def serve(self, connection: Connection) -> None:
        """Answer a connection's requests until it ends."""
        self.tally.connections(1)
        try:
            while (request := await connection.next_request()) is not None:
                await self._answer(connection, request)
        except ConnectionError:
            pass  # the client left; what it had asked for was counted
        except h11.RemoteProtocolError as error:
            await connection.respond(_OPENAI.error(400, f"This is not HTTP/1.1: {error}"))
        finally:
            connection.close()
            self.tally.connections(-1)

    async def _answer(self, connection: Connection, request: Request) -> None:
        asked = (request.method, request.path)
        if asked == ("POST", "/v1/chat/completions"):
            await self._generate(connection, request, _OPENAI)
        elif request.method == "POST" and _GENERATE.fullmatch(request.path):
            await self._generate(connection, request, _GEMINI)
        elif request.method == "GET" and _MODELS.fullmatch(request.path):
            # Both protocols have a list at /v1/models; Google's clients name themselves.
            google = request.path != "/v1/models" or "x-goog-api-client" in request.headers
            await connection.respond((_GEMINI if google else _OPENAI).models(self.behaviour.model))
        elif asked == ("GET", "/stats"):
            await connection.respond(Response.json(200, _as_json(self.tally)))
        else:
            await connection.respond(_OPENAI.error(404, f"Unknown request: {request.method} {request.path}"))

    async def _generate(self, connection: Connection, request: Request, wire: Wire) -> None:
        behaviour = self.behaviour
        number = self.tally.arrived(request.headers.get("x-client-request-id"))
        sent = wire.key(request)
        if behaviour.api_key is not None and sent != behaviour.api_key:
            self.tally.decided("unauthorized")
            return await connection.respond(wire.error(401, f"Incorrect API key provided: {sent}."))
        try:
            prompt = wire.prompt(_body(request))
        except BadRequestError as error:
            self.tally.decided("bad_request")
            return await connection.respond(wire.error(400, str(error)))
        key = request.headers.get("idempotency-key")
        stored_as = f"{wire.name}\n{key}" if behaviour.idempotent and key else None
        if stored_as is not None and (earlier := await self._replies.earlier(stored_as)) is not None:
            self.tally.decided("replayed")
            return await connection.respond(earlier)
        hold = _Hold(self._slots, self._replies, stored_as)
        try:
            fault = drawn(behaviour, number)
            limit = self._limit(behaviour, fault)
            kind = limit or (fault.value if fault else "ok")
            self.tally.decided(kind)
            turn = self._turns[wire.name, kind]
            self._turns[wire.name, kind] += 1
            if limit is not None:
                hold.let_go()
                return await connection.respond(_too_many(wire, behaviour, limit))
            self.tally.working(hold.enter())
            await self._work(connection, _Work(number, key, wire, prompt, behaviour, fault, turn), hold)
        finally:
            hold.let_go()

    def _limit(self, behaviour: Behaviour, fault: FaultKind | None) -> str | None:
        """Which limit refuses the request, a pretended one first: it takes nothing from the real ones."""
        if fault in (FaultKind.RATE_LIMIT, FaultKind.RATE_LIMIT_RETRY_AFTER):
            return fault.value
        if not self._slots.has_room(behaviour.concurrent):
            return "limited_concurrent"
        if not self._bucket.take(behaviour.rps, behaviour.capacity, time.monotonic()):
            return "limited_rps"
        return None

    async def _work(self, connection: Connection, work: _Work, hold: _Hold) -> None:
        if work.fault is FaultKind.RESET:
            hold.let_go()
            return connection.reset()
        if work.fault is FaultKind.HANG:
            return await connection.until_closed()
        # Not cut short when the client leaves: a model that has begun a reply finishes it, and sends the bill.
        await asyncio.sleep(latency_s(work.behaviour, work.number))
        if work.fault is FaultKind.SERVER_ERROR:
            hold.let_go()
            return await connection.respond(_server_error(work))
        if work.fault is FaultKind.EMPTY:
            hold.let_go()
            return await connection.respond(work.wire.empty(work.marks))
        await self._reply(connection, work, hold)

    async def _reply(self, connection: Connection, work: _Work, hold: _Hold) -> None:
        draw = work.key or f"request {work.number}"
        reply = replied(work.behaviour, work.prompt, graded(work.behaviour, work.prompt, draw), work.fault, work.turn)
        response = work.wire.reply(reply, work.marks)
        if work.fault is FaultKind.HALF_BODY:
            hold.let_go()
            return await connection.respond_half(response)
        if work.fault is FaultKind.NOT_JSON:
            hold.let_go()
            return await connection.respond(_no_json(response, work.turn))
        slow = work.fault is FaultKind.SLOW_BODY
        if slow:
            # White space may stand before a JSON document, and a client that waits to the end finds a good one.
            response = dataclasses.replace(response, body=response.body.rjust(_DRIPPED_BYTES))
            if not await connection.drip(response, _DRIP_S):
                return
        # All of this before the last byte: a client that reacts to it at once finds its slot free and its bill written.
        self.tally.billed(work.key, reply.tokens_in, reply.tokens_out)
        hold.let_go(response)
        await (connection.finish(response) if slow else connection.respond(response))


def _body(request: Request) -> Mapping[str, Any]:
    try:
        body = json.loads(request.body)
    except ValueError:
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    return body


def _too_many(wire: Wire, behaviour: Behaviour, limit: str) -> Response:
    wait = behaviour.retry_after
    if limit == FaultKind.RATE_LIMIT_RETRY_AFTER and wait is None:
        wait = 1.0
    response = wire.error(429, _LIMITED, seconds(wait))
    return response if wait is None else dataclasses.replace(response, headers={"Retry-After": header(wait)})


def _server_error(work: _Work) -> Response:
    status = SERVER_ERRORS[work.turn % len(SERVER_ERRORS)]
    if status == 502:
        return Response.page(status)
    return work.wire.error(status, "The test double had an error while it worked on your request.")


def _no_json(response: Response, turn: int) -> Response:
    """The same cut off in the middle, complete as HTTP goes; and a gateway's page, in turn."""
    if turn % 2:
        return Response.page(200)
    return dataclasses.replace(response, body=response.body[: len(response.body) // 2])


def _as_json(tally: Tally) -> dict[str, Any]:
    stats = tally.snapshot()
    return {field.name: _plain(getattr(stats, field.name)) for field in dataclasses.fields(stats)}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
