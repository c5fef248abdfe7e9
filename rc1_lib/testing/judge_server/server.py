"""The server: a thread with an event loop of its own, on 127.0.0.1, gone without a trace when it is left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rc1_lib.errors import RC1Error
from rc1_lib.testing.judge_server.behaviour import Behaviour
from rc1_lib.testing.judge_server.connection import Connection
from rc1_lib.testing.judge_server.service import Service
from rc1_lib.testing.judge_server.stats import Stats

HOST = "127.0.0.1"
_BACKLOG = 1024


class JudgeServer:
    """A running test double.

    Attributes:
        port: where it listens, on 127.0.0.1.
    """

    def __init__(self, service: Service, port: int) -> None:
        """Describe a server that listens."""
        self._service = service
        self.port = port

    @property
    def base_url(self) -> str:
        """For OpenAI clients."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def gemini_url(self) -> str:
        """For `http_options.base_url` of google-genai."""
        return f"http://{HOST}:{self.port}"

    @property
    def behaviour(self) -> Behaviour:
        """How it behaves; a new one counts from the next request on."""
        return self._service.behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour) -> None:
        self._service.behaviour = behaviour

    def stats(self) -> Stats:
        """Its count now; after the end, the last one."""
        return self._service.tally.snapshot()


@contextmanager
def running(behaviour: Behaviour | None = None, *, port: int = 0) -> Iterator[JudgeServer]:
    """Serve while the block runs, from a thread of its own.

    Args:
        behaviour: how it behaves; default: well.
        port: where to listen; 0 takes a free one.

    Raises:
        RC1Error: when the port is taken.
    """
    thread = _Thread(Service(behaviour or Behaviour()), port)
    thread.start()
    try:
        yield thread.server()
    finally:
        thread.stop()


class _Thread:
    """The thread, the loop on it and the connections of that loop."""

    def __init__(self, service: Service, port: int) -> None:
        self._service, self._port = service, port
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="judge-server", daemon=True)
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._listening: tuple[asyncio.AbstractEventLoop, asyncio.Event, int] | None = None
        self._connections: dict[asyncio.Task[None], Connection] = {}

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def server(self) -> JudgeServer:
        if self._listening is None:
            raise RC1Error(f"port {self._port} on {HOST} cannot be used ({self._failure}); name another one, or 0")
        return JudgeServer(self._service, self._listening[2])

    def stop(self) -> None:
        if self._listening is not None:
            loop, end, _ = self._listening
            loop.call_soon_threadsafe(end.set)
        self._thread.join()

    async def _serve(self) -> None:
        end = asyncio.Event()
        try:
            listener = await asyncio.start_server(self._accept, HOST, self._port, backlog=_BACKLOG)
        except OSError as error:
            self._failure = error
            return
        else:
            self._listening = asyncio.get_running_loop(), end, listener.sockets[0].getsockname()[1]
        finally:
            self._ready.set()
        async with listener:
            await end.wait()
            listener.close()
            await self._end_connections()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        task = asyncio.get_running_loop().create_task(self._service.serve(connection))
        self._connections[task] = connection
        task.add_done_callback(self._connections.pop)

    async def _end_connections(self) -> None:
        tasks = tuple(self._connections)
        for connection in self._connections.values():
            connection.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
