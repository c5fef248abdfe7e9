"""OpenEnv's validator and client on an exported world, which its own server serves."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from rc1_lib.extras.worlds.served import ServedWorld, replayed
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.extras.worlds.small import REWARDS, ROWS, turns_of

pytestmark = pytest.mark.skipif(find_spec("openenv") is None, reason="the extra 'openenv' is not installed")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Start the folder's own server in a separate process; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "server.app", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        try:
            _await(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _await(health: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "the server ended"
        try:
            with urlopen(health):
                return
        except URLError:
            time.sleep(0.1)
    raise AssertionError("the server did not come up within a minute")


@pytest.fixture(scope="module")
def address(world: Path) -> Iterator[str]:
    with serving(world) as address:
        yield address


@dataclass
class Here:
    """A provider for OpenEnv's validator that uses a server on this machine instead of a container."""

    base_url: str
    name = "here"
    supported_network_modes = frozenset({"no-network"})

    @property
    def capabilities(self) -> frozenset[Any]:
        from openenv.validation.types import ProviderCapability

        return frozenset({ProviderCapability.IMAGE_BUILD})

    def build(self, root: Path, execution: Any) -> str:
        return "sha256:" + "0" * 64

    def start(self, spec: Any) -> Here:
        return self

    def inspect(self) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        pass


def checks(folder: Path, address: str) -> dict[str, str]:
    """Run OpenEnv's validator on a folder and its server: check -> status."""
    from openenv.validation import Level, run_validation

    report = run_validation(folder, max_level=Level.RUNTIME, provider=Here(address))
    return {result.check_id: result.status.value for result in report.results if result.status.value != "skip"}


PASSED = {
    "static.manifest": "pass", "runtime.startup": "pass", "runtime.reward_well_formed": "pass",
    "runtime.observation_schema": "pass", "runtime.state_contract": "pass",
}  # fmt: skip
"""All checks that this version of OpenEnv can do without a container."""


def test_openenv_validator_passes_on_the_server(address: str) -> None:
    command = [sys.executable, "-m", "openenv.cli", "validate", "--url", address, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["mode"]) == (0, True, "simulation"), done.stdout
    assert report["summary"]["failed_criteria"] == []


def test_openenv_runtime_checks_pass(world: Path, address: str) -> None:
    assert checks(world, address) == PASSED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_episode_through_the_openenv_client_earns_our_reward(world: Path, address: str, row: dict[str, Any]) -> None:
    from openenv import GenericEnvClient

    served = ServedWorld.read(world)
    rewards: list[float] = []
    observations: list[Any] = []
    with GenericEnvClient(base_url=address).sync() as client:
        result = client.reset(row=row["id"], episode_id="mine")
        assert [message["content"] for message in result.observation["messages"]] == [
            message["content"] for message in row["messages"][:2]
        ]
        for turn in turns_of(row):
            assert not result.done
            result = client.step({"content": turn["content"], "tool_calls": turn.get("tool_calls", [])})
            rewards.append(result.reward)
            observations += result.observation["messages"]
        state = client.state()
    assert (result.done, result.observation["status"]) == (True, "answered")
    assert rewards[:-1] == [0.0] * (len(rewards) - 1)
    assert rewards[-1] == replayed(served.spec, served.row_of(row["id"]), turns_of(row))[1].total
    assert rewards[-1] == pytest.approx(REWARDS[row["id"]], abs=1e-12)
    assert [message["content"] for message in observations] == [
        message["content"] for message in row["messages"][2:] if message["role"] == "tool"
    ]
    assert (state["episode_id"], state["step_count"], state["row"]) == ("mine", len(rewards), row["id"])


def test_step_out_of_turn_is_an_error_and_calls_in_text_are_run(address: str) -> None:
    from openenv import GenericEnvClient

    with GenericEnvClient(base_url=address).sync() as client:
        with pytest.raises(RuntimeError, match="reset"):
            client.step({"content": "Answer: 384"})
        client.reset(row="pool-gsm8k-1")
        asked = '<tool_call>{"name": "ask_user", "arguments": {"question": "How many jars?"}}</tool_call>'
        assert client.step({"content": asked}).observation["messages"][0]["content"] == "It is 39."
        assert client.step({"content": "Answer: 384"}).done
        with pytest.raises(RuntimeError, match="is over"):
            client.step({"content": "Answer: 384"})
