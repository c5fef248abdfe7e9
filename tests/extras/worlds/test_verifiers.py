"""The validator and rollouts of verifiers on an exported world; the model is a script on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.extras.worlds.served import ServedWorld, replayed
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.extras.worlds.small import REWARDS, ROWS, turns_of

pytestmark = pytest.mark.skipif(find_spec("verifiers") is None, reason="the extra 'verifiers' is not installed")

Turns = list[dict[str, Any]]


def verifiers(program: str, world: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of verifiers' programs on a world, without its dashboard."""
    command = [sys.executable, "-c", f"from verifiers.v1.cli.{program} import main; main()", "rc1-world"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "NO_KEY": "none"}
    return subprocess.run(
        [*command, *arguments, "--no-rich", "-o", str(out)],
        cwd=world.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def validated(world: Path, out: Path) -> dict[str, dict[str, int]]:
    """The counts of `vf-validate` that are not zero: check -> outcome -> count."""
    runtime = ("--taskset.folder", str(world), "--runtime.type", "subprocess")
    done = verifiers("validate", world, out, *runtime)
    assert done.returncode == 0, done.stdout + done.stderr
    (summary,) = out.glob("*/summary.json")
    checks = json.loads(summary.read_text())["checks"]
    return {check: {kind: count for kind, count in found.items() if count} for check, found in checks.items()}


def test_vf_validate_passes(world: Path, tmp_path: Path) -> None:
    assert validated(world, tmp_path / "out") == {"gold": {"valid": 3}, "noop": {"valid": 3}}


@contextmanager
def scripted(turns: Turns, finish: str = "stop") -> Iterator[str]:
    """An endpoint of OpenAI's protocol that replies with the next turn, counted by the conversation so far."""

    class Script(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = sum(message["role"] == "assistant" for message in body["messages"])
            message = {"role": "assistant", **turns[number]}
            reply = {
                "id": f"reply-{number}", "object": "chat.completion", "created": 0, "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }  # fmt: skip
            sent = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Script) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def played(world: Path, out: Path, row: str, turns: Turns, finish: str = "stop") -> dict[str, Any]:
    """The trace of one rollout of a row by a model that says these turns."""
    with scripted(turns, finish) as endpoint:
        done = verifiers(
            "eval.main", world, out, "--model", "script", "--no-push", "--select.include.ids", json.dumps([row]),
            "--client.base-url", endpoint, "--client.api-key-var", "NO_KEY",
            "--env.taskset.folder", str(world), "--env.agent.runtime.type", "subprocess",
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (traces,) = out.glob("*/traces.jsonl")
    (line,) = traces.read_text().splitlines()
    (trace,) = json.loads(line)["traces"]
    found: dict[str, Any] = trace
    return found


def reward_of(trace: dict[str, Any]) -> float:
    assert not trace.get("errors"), trace["errors"]
    (reward,) = trace["rewards"].values()
    score: float = reward["score"]
    return score


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_verifiers_rollout_earns_our_reward(world: Path, tmp_path: Path, row: dict[str, Any]) -> None:
    served = ServedWorld.read(world)
    trace = played(world, tmp_path / "out", row["id"], turns_of(row))
    found = reward_of(trace)
    assert found == replayed(served.spec, served.row_of(row["id"]), turns_of(row))[1].total
    assert found == pytest.approx(REWARDS[row["id"]], abs=1e-12)
    assert trace["metrics"]["solved"] == row["solved"]


def test_malformed_turns_are_charged_and_a_truncated_answer_earns_nothing(world: Path, tmp_path: Path) -> None:
    broken: Turns = [{"content": "<tool_call>"}, {"content": "Answer: 384"}]
    assert reward_of(played(world, tmp_path / "a", "pool-gsm8k-2", broken)) == pytest.approx(
        0.7 * 0.95 - 0.1 - 2 * 0.04
    )
    twice: Turns = [{"content": "<tool_call>"}, {"content": "<tool_call>"}]
    assert reward_of(played(world, tmp_path / "b", "pool-gsm8k-2", twice)) == pytest.approx(-0.2 - 2 * 0.04)
    cut: Turns = [{"content": "Answer: 384"}]
    assert reward_of(played(world, tmp_path / "c", "pool-gsm8k-2", cut, "length")) == pytest.approx(-0.04)
