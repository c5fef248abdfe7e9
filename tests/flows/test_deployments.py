"""The deployments, and the settings of Prefect with which they are served."""

from __future__ import annotations

import inspect
import os
import socket
from importlib import import_module
from pathlib import Path

import pytest

from deployments import serve
from deployments.register import deployments_of
from deployments.server import settings
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.state import state_of


def test_deployments_are_of_the_served_workspace_and_their_flows_take_their_parameters(tmp_path: Path) -> None:
    found = {one.name: one for one in deployments_of(tmp_path)}
    assert set(found) == {"preflight", "calibrate", "train", "scale-up", "nightly"}
    assert {name for name, one in found.items() if one.schedules} == {"nightly"}
    assert found["nightly"].parameters["recheck"] and not found["nightly"].parameters["ticket"]
    for one in found.values():
        file, _, name = str(one.entrypoint).partition(":")
        flow = getattr(import_module(file.removesuffix(".py").replace("/", ".")), name)
        defaults = {key: given.default for key, given in inspect.signature(flow.fn).parameters.items()}
        assert defaults["profile"] is None, "RUN_MODE decides"
        assert one.parameters["workspace"] == str(tmp_path)
        flow.validate_parameters({**defaults, **one.parameters})


def test_used_port_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RC1Error, match=f"port {port} "):
            serve.serve(tmp_path, port)


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings that an earlier test's local run left in the environment."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)


def test_settings_keep_prefect_on_this_machine(tmp_path: Path, bare_environment: None) -> None:
    chosen = settings(tmp_path, "http://127.0.0.1:4200")
    assert (chosen["PREFECT_SERVER_ANALYTICS_ENABLED"], chosen["DO_NOT_TRACK"]) == ("false", "1")
    assert chosen["PREFECT_SERVER_UI_V2_ENABLED"] == "false"
    kept_here = ("PREFECT_HOME", "PREFECT_LOCAL_STORAGE_PATH", "PREFECT_SERVER_DATABASE_CONNECTION_URL")
    assert all(str(state_of(tmp_path)) in chosen[name] for name in kept_here)
