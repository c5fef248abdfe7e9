"""Gates evaluated in other processes give the same verdicts, even if a process is lost."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import nullcontext
from typing import Any

import orjson
import pytest

from rc1_lib.gates import gate_list
from rc1_lib.gates.gate_list import BY_NAME, gates_of_round
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json
from tasks.endings import REFUSED, ROUNDS_PASSED

from .conftest import start

DISTRIBUTED = (
    "training_config", "overclar_penalty", "shadow_set", "mix", "length", "diversity", "duplicates", "leakage",
    "consistency", "missing_piece", "answer_rule", "difficulty",
)  # fmt: skip


def judged(run: Run, **parameters: Any) -> bytes:
    """The gates in round 1's report, as bytes."""
    state = start(run, rounds=[1], ticket=False, **parameters)
    assert state.name == ROUNDS_PASSED, state.message
    return orjson.dumps(read_json(run.workspace.path("reports/preflight/round1.json"))["gates"])


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

    monkeypatch.setattr("flows.preflight.other_processes", lambda _: nullcontext(Lost()))
    assert judged(preflighted_copy, task_runner="dask") == alone
    assert asked == [spec.name for spec in few]


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec("prefect_dask") is None, reason="prefect-dask (extra `dask`) is not installed"
)
def test_other_processes_give_the_same_verdicts(preflighted_copy: Run, pure_gates: None) -> None:
    assert judged(preflighted_copy, task_runner="dask", refresh=True) == judged(preflighted_copy)


def test_dask_without_its_extra_is_refused(preflighted_copy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prefect_dask", None)
    state = start(preflighted_copy, task_runner="dask")
    assert state.name == REFUSED and "task_runner: is dask, which is not installed" in str(state.message)
