"""The server that RC1 starts answers nobody without its password, nor under a foreign name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from prefect.server.api.server import API_ROUTERS
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

ROUTES = [(method, route.path) for router in API_ROUTERS for route in router.routes if isinstance(route, APIRoute)
          for method in route.methods]  # fmt: skip
SOCKETS = [route.path for router in API_ROUTERS for route in router.routes if isinstance(route, APIWebSocketRoute)]
OPEN = {"/health", "/ready"}


@pytest.fixture(scope="module")
def web() -> Iterator[httpx.Client]:
    """A client without a password."""
    with httpx.Client(base_url=str(PREFECT_API_URL.value()), timeout=60, trust_env=False) as client:
        yield client


def login() -> tuple[str, str]:
    """User and password of the tests' server."""
    user, _, word = str(PREFECT_API_AUTH_STRING.value()).partition(":")
    return user, word


def test_every_route_needs_the_password(web: httpx.Client) -> None:
    answers = {(method, path): web.request(method, path).status_code for method, path in ROUTES}
    assert len(answers) > 150
    assert {key for key, status in answers.items() if status != 401} <= {("GET", path) for path in OPEN}
    assert web.post("/flow_runs/filter", json={}, auth=("rc1", "guessed")).status_code == 401
    assert web.post("/flow_runs/filter", json={}, auth=login()).status_code == 200


@pytest.mark.parametrize("path", SOCKETS)
def test_every_socket_needs_the_password(web: httpx.Client, path: str) -> None:
    address = str(web.base_url).replace("http://", "ws://").rstrip("/") + path
    with (
        connect(address, subprotocols=[Subprotocol("prefect")], proxy=None) as socket,
        pytest.raises(ConnectionClosed),
    ):
        socket.send(json.dumps({"type": "auth", "token": "rc1:guessed"}))
        socket.recv(timeout=30)


@pytest.mark.parametrize("path", ["/", "/rc1/proof?x", "/api/flows/filter"])
def test_foreign_name_of_this_machine_is_refused(web: httpx.Client, path: str) -> None:
    address = str(web.base_url).removesuffix("/").removesuffix("/api") + path
    assert web.get(address, auth=login()).status_code != 400
    assert web.get(address, headers={"Host": "rc1.attacker.example:4200"}, auth=login()).status_code == 400


@pytest.mark.parametrize(
    ("origin", "allowed"), [("http://attacker.example", False), ("null", False), ("http://localhost:{port}", True)]
)
def test_only_its_own_page_may_read_answers(web: httpx.Client, origin: str, allowed: bool) -> None:
    asking: dict[str, Any] = {"Origin": origin.format(port=web.base_url.port)}
    answer = web.post("/flow_runs/filter", json={}, auth=login(), headers=asking)
    assert answer.headers.get("access-control-allow-origin") == (asking["Origin"] if allowed else None)
    asking |= {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = web.options("/flow_runs/filter", headers=asking)
    assert ("access-control-allow-origin" in preflight.headers) is allowed
