"""A server of the OpenAI protocol with scripted replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rc1_lib.judge.rubric import DIMENSIONS

Reply = tuple[int, dict[str, str], Any]
"""Status, headers, and the body: a JSON value, or text or bytes that are sent unchanged."""


def completion(text: str | None = None, model: str = "judge-large-2") -> Reply:
    """Return a chat completion, by default with valid scores."""
    content = text if text is not None else json.dumps({"reason": "Fine.", **dict.fromkeys(DIMENSIONS, 0.5)})
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    return 200, {}, {"id": "chatcmpl-1", "model": model, "choices": [choice], "usage": usage}


@dataclass
class Gateway:
    """A server of the OpenAI protocol with scripted replies.

    Attributes:
        url: for OpenAI clients.
        replies: makes the reply to a request from its number (from 0), its body's text and its headers (names in
            lower case).
        requests: the bodies received so far, as text.
        heads: their request lines and headers.
    """

    url: str
    replies: Callable[[int, str, dict[str, str]], Reply] = lambda number, body, headers: completion()
    requests: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)


@contextmanager
def running_gateway() -> Iterator[Gateway]:
    """Run a gateway."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            received = {name.lower(): text for name, text in self.headers.items()}
            with lock:
                number = len(gateway.requests)
                gateway.requests.append(body)
                gateway.heads.append(
                    "\r\n".join((self.requestline, *(f"{n}: {t}" for n, t in self.headers.items()), ""))
                )
                status, headers, value = gateway.replies(number, body, received)
            sent = (
                value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()
            )
            self.send_response(status)
            for name, text in {"Content-Type": "application/json", "Content-Length": str(len(sent)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        gateway = Gateway(f"http://127.0.0.1:{server.server_address[1]}/v1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield gateway
        server.shutdown()
        thread.join()
