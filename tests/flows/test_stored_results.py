"""Verdicts are not stored for other processes, and nothing in Prefect's storage is read."""

from __future__ import annotations

import base64
import os
import pickle
import pkgutil
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest
from prefect import State, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import StateType
from prefect.results import ResultRecord, ResultRecordMetadata

import flows.preflight
import tasks
from deployments import local_run
from deployments.access import Access
from deployments.local_run import FAULT
from deployments.server import settings
from flows.failures import _fault
from rc1_lib.workspace.state import make_state
from tests.forks import another_interpreter
from tests.shares import share

_MODULES = [import_module(f"tasks.{found.name}") for found in pkgutil.iter_modules(tasks.__path__)]
TASKS = {name: one for module in _MODULES for name, one in vars(module).items() if isinstance(one, Task)}


class Touch:
    """An object whose unpickling makes a folder."""

    def __init__(self, path: Path) -> None:
        """The folder."""
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def planted(ran: Path) -> bytes:
    """A record as Prefect stores it, whose deserialization makes the folder `ran`."""
    result = base64.encodebytes(pickle.dumps(Touch(ran))).decode()
    return orjson.dumps({"metadata": {"serializer": {"type": "pickle", "picklelib": "pickle"}}, "result": result})


@pytest.mark.parametrize("name", TASKS)
def test_task_neither_stores_nor_reads_results_in_prefect(name: str) -> None:
    assert (TASKS[name].persist_result, TASKS[name].cache_policy) == (False, NO_CACHE)


def test_planted_record_runs_code_when_deserialized(tmp_path: Path) -> None:
    ResultRecord.deserialize(planted(tmp_path / "ran"))
    assert (tmp_path / "ran").is_dir()


def test_state_of_a_server_that_names_a_pickle_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may answer with a state of its own, whose data name a file and its serializer."""
    file, ran = tmp_path / "planted", tmp_path / "ran"
    file.write_bytes(planted(ran))
    state: State[Any] = State(type=StateType.FAILED, message="x", data=ResultRecordMetadata(storage_key=str(file)))
    monkeypatch.setattr(flows.preflight, "preflight", lambda **_: state)
    monkeypatch.setattr(local_run, "_server", lambda *_: nullcontext((Access(9, "rc1:x"), True)))
    assert local_run.run_flow("preflight", workspace=str(tmp_path / "workspace")).exit_code == FAULT
    assert str(_fault(state)) == "x"
    assert not ran.exists()
    with suppress(Exception):
        state.result(raise_on_failure=False)
    assert ran.exists(), "Prefect's own way would have loaded it"


@pytest.mark.parametrize("own", share([True, False], True), ids=["started by RC1", "started by Prefect"])
def test_file_cannot_configure_prefects_logging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool) -> None:
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    home, ran = make_state(tmp_path), tmp_path / "ran"
    (home / "logging.yml").write_text(f'version: 1\nformatters: {{a: {{"()": os.mkdir, path: {ran}}}}}\n')
    chosen = settings(tmp_path, "http://127.0.0.1:4200")
    with another_interpreter(tmp_path / "forks") as forks:
        loaded = forks.start(
            "prefect.logging.configuration.setup_logging",
            environment=chosen if own else {"PREFECT_HOME": chosen["PREFECT_HOME"]},
        )
        loaded.wait()
    assert ran.exists() is not own
