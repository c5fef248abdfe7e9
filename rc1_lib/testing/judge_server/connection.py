"""One HTTP/1.1 connection with full control over its bytes: whole, half, dripping, reset or silent."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

MARK = ("X-RC1-Test-Double", "1")
"""The header that every response carries."""
_CHUNK = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """A request, read whole. Names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A response: its status, its body and further headers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    @classmethod
    def json(cls, status: int, value: Any, headers: Mapping[str, str] | None = None) -> Response:
        """A response with a JSON body."""
        return cls(status, json.dumps(value, ensure_ascii=False).encode(), headers or {})

    @classmethod
    def page(cls, status: int) -> Response:
        """The HTML page that a gateway puts in the place of what it should have passed on."""
        title = f"{status} {HTTPStatus(status).phrase}"
        body = f"<html>\r\n<head><title>{title}</title></head>\r\n<body><h1>{title}</h1></body>\r\n</html>\r\n"
        return cls(status, body.encode(), content_type="text/html")


class Connection:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak HTTP over these streams."""
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self) -> Request | None:
        """The next request; None when there is none to come.

        Raises:
            h11.RemoteProtocolError: when the client does not speak HTTP/1.1.
            ConnectionError: when the connection breaks.
        """
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
                self._http.receive_data(await self._reader.read(_CHUNK))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _request(head, bytes(body))
            else:
                return None

    async def respond(self, response: Response) -> None:
        """Send it whole, in one write."""
        self._write(
            self._head(response), self._http.send(h11.Data(data=response.body)), self._http.send(h11.EndOfMessage())
        )
        await self._writer.drain()

    async def respond_half(self, response: Response) -> None:
        """Promise the whole body, send half of it and close the connection."""
        half = response.body[: len(response.body) // 2]
        self._write(self._head(response), self._http.send(h11.Data(data=half)))
        await self._writer.drain()
        self._writer.close()

    async def drip(self, response: Response, seconds: float) -> bool:
        """Send the body byte by byte, `seconds` apart, its last byte excepted.

        Returns:
            Whether the client is still there, so that `finish` may send the last one.
        """
        gone = asyncio.create_task(self.until_closed())
        try:
            self._write(self._head(response))
            for place in range(len(response.body) - 1):
                await asyncio.wait({gone}, timeout=seconds)
                if gone.done():
                    return False
                self._write(self._http.send(h11.Data(data=response.body[place : place + 1])))
            return True
        finally:
            gone.cancel()
            await asyncio.wait({gone})

    async def finish(self, response: Response) -> None:
        """Send the last byte of a body that dripped."""
        self._write(self._http.send(h11.Data(data=response.body[-1:])), self._http.send(h11.EndOfMessage()))
        await self._writer.drain()

    async def until_closed(self) -> None:
        """Wait until the client closes the connection; whatever it still sends is ignored."""
        try:
            while await self._reader.read(_CHUNK):
                pass
        except ConnectionError:
            pass

    def reset(self) -> None:
        """Break the connection at once: the client sees a reset, not an end."""
        if self._writer.is_closing():
            return
        connected = self._writer.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._writer.transport.abort()

    def close(self) -> None:
        """Close the connection, what was written being sent first."""
        self._writer.close()

    def abort(self) -> None:
        """Close the connection without waiting for anything."""
        self._writer.transport.abort()

    def _head(self, response: Response) -> bytes:
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            MARK,
            *response.headers.items(),
        ]
        return self._sent(h11.Response(status_code=response.status, headers=headers))

    def _sent(self, event: h11.Response) -> bytes:
        return self._http.send(event) or b""

    def _write(self, *pieces: bytes | None) -> None:
        self._writer.write(b"".join(piece for piece in pieces if piece))


def _request(head: h11.Request, body: bytes) -> Request:
    target = urlsplit(head.target.decode("ascii"))
    return Request(
        method=head.method.decode("ascii"),
        path=unquote(target.path),
        query=dict(parse_qsl(target.query)),
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )
