"""Gates evaluated in other processes give the same verdicts, even if a process is lost."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import orjson
import pytest

from deployments import children
from flows.rounds import dask_processes
from rc1_lib.gates import gate_list
from rc1_lib.gates.gate_list import BY_NAME, gates_of_round
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json
from tasks.endings import ROUNDS_PASSED

from .conftest import start

DISTRIBUTED = (
    "training_config", "overclar_penalty", "shadow_set", "mix", "length", "diversity", "duplicates", "leakage",
    "consistency", "missing_piece", "answer_rule", "difficulty",
)  # fmt: skip
needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("prefect_dask") is None, reason="prefect-dask (extra `dask`) is not installed"
)


def judged(run: Run, **parameters: Any) -> bytes:
    """The gates in round 1's report, as bytes."""
    state = start(run, rounds=[1], ticket=False, **parameters)
    assert state.name == ROUNDS_PASSED, state.message
    return orjson.dumps(read_json(run.workspace.path("reports/preflight/round1.json"))["gates"])


def spawned() -> list[int]:
    """The processes of the cluster that this process started."""
    below = children.descendants(os.getpid())
    return [pid for pid in below if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.fixture
def pure_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds have only gates that other processes may evaluate."""
    chosen = tuple(spec for spec in gate_list.PREFLIGHT if not spec.reads_world)
    monkeypatch.setattr(gate_list, "PREFLIGHT", chosen)


def test_only_gates_that_read_just_files_are_distributed() -> None:
    assert tuple(spec.name for spec in gates_of_round(1) if not spec.reads_world) == DISTRIBUTED
    assert all(spec.reads_world for spec in BY_NAME.values() if spec.asks or spec.looks_at)


def test_gates_of_lost_processes_are_evaluated_locally(
    preflighted_copy: Run, pure_gates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tuple(spec for spec in gate_list.PREFLIGHT if spec.name in ("mix", "length", "duplicates"))
    monkeypatch.setattr(gate_list, "PREFLIGHT", few)
    alone = judged(preflighted_copy)

    asked: list[str] = []

    class Lost:
        """A cluster whose processes are lost, and the future of its tasks."""

        def submit(self, _: Any, parameters: dict[str, Any]) -> Lost:
            asked.append(parameters["name"])
            return self

        def result(self, **_: Any) -> Any:
            raise ConnectionError("the process is gone")

    monkeypatch.setattr("flows.preflight.dask_processes", lambda processes: nullcontext(Lost()))
    assert judged(preflighted_copy, gate_processes=2) == alone
    assert asked == [spec.name for spec in few]


@needs_dask
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the processes to be killed are found in /proc")
def test_two_processes_give_the_verdicts_of_one_even_when_one_is_killed(
    preflighted_copy: Run, pure_gates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = judged(preflighted_copy)
    assert judged(preflighted_copy, gate_processes=2, refresh=True) == alone
    killed: list[int] = []

    @contextmanager
    def one_is_killed(processes: int) -> Iterator[Any]:
        with dask_processes(processes) as cluster:
            assert cluster is not None
            pids = spawned()
            assert len(pids) == 2
            submit = cluster.submit

            def submitted(task: Any, parameters: dict[str, Any]) -> Any:
                future = submit(task, parameters)
                if parameters["name"] == DISTRIBUTED[-1]:
                    killed.append(pids[0])
                    os.kill(pids[0], signal.SIGKILL)
                return future

            monkeypatch.setattr(cluster, "submit", submitted)
            yield cluster

    monkeypatch.setattr("flows.preflight.dask_processes", one_is_killed)
    assert judged(preflighted_copy, gate_processes=2, refresh=True) == alone
    assert len(killed) == 1
