"""A failed nightly run is reported by webhook: a real server's automation calls a receiver over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import httpx
import pytest
from prefect import State
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL
from pydantic import SecretStr

from deployments.notify import BLOCK, NAME, notify_on_failure
from rc1_lib.run import Run

SECRET = "/services/T0NOBODY/x7Qp2kVb91"
PATIENCE_S = 60.0

pytestmark = pytest.mark.usefixtures("no_automation_left")


@dataclass
class Receiver:
    """The listener at the webhook's address, and the calls that it received."""

    port: int = 0
    calls: Queue[tuple[str, Any]] = field(default_factory=Queue)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{SECRET}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receives = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receives.calls.put((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """No log: the test reads the calls."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receives.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield receives
        server.shutdown()


def test_only_a_failed_nightly_run_is_reported_with_its_cause(
    preflighted_copy: Run, run_flow: Callable[..., State[Any]], only_gates: Callable[..., None], receiver: Receiver
) -> None:
    only_gates("judge_drift")
    assert notify_on_failure(receiver.address)
    nightly = {"build": "never", "refresh": True, "recheck": True, "ticket": False, "rounds": [1]}
    assert run_flow(preflighted_copy, **nightly).name == "TicketConfirmed"
    pool = preflighted_copy.workspace.path(preflighted_copy.config.pool.path)
    pool.write_bytes(pool.read_bytes() + b"\n")
    failed = run_flow(preflighted_copy, **nightly)
    assert failed.name == "GatesFailed"
    path, body = receiver.calls.get(timeout=PATIENCE_S)
    assert path == SECRET
    assert (body["state"], body["message"]) == ("GatesFailed", failed.message)
    assert f"{preflighted_copy.config.pool.path} has changed" in body["text"]
    assert receiver.calls.empty(), "the passed run was not reported"
    assert_address_is_hidden_by_the_server()


def assert_address_is_hidden_by_the_server() -> None:
    """No response of the server has the address: no block, automation, event or log."""
    url, (user, _, word) = str(PREFECT_API_URL.value()), str(PREFECT_API_AUTH_STRING.value()).partition(":")
    for route in ("block_documents/filter", "automations/filter", "events/filter", "logs/filter"):
        body = {"limit": 50} if route == "logs/filter" else {}
        answer = httpx.post(f"{url}/{route}", json=body, auth=(user, word), timeout=30)
        assert answer.status_code == 200, answer.text
        assert SECRET not in answer.text, route


def test_manual_webhook_block_is_used_and_without_one_there_is_no_automation(receiver: Receiver) -> None:
    with get_client(sync_client=True) as client:
        notify_on_failure(receiver.address)
        notify_on_failure()
        assert len(client.read_automations_by_name(NAME)) == 1, "registering twice makes one automation"
        Webhook.delete(BLOCK)
        assert not notify_on_failure()
        assert not client.read_automations_by_name(NAME)
        Webhook(url=SecretStr(receiver.address)).save(BLOCK)
        assert notify_on_failure()
    Webhook.delete(BLOCK)
