"""Run a flow in this process, without a running server, for `rc1 preflight`, `rc1 train` and `make run`.

The run is recorded in the Prefect database that this user has for the workspace, so `make serve` shows it later. If the
workspace is being served, that server is used; otherwise a private one runs for the duration of the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deployments.access import Access, running_server
from deployments.server import Server, ServerFault, check_prefect_files, free_port, healthy, settings, start_server
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.runtime.libraries import check_proxies
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.artifacts import Workspace, default_root
from rc1_lib.workspace.folder import check_free

if TYPE_CHECKING:
    from prefect import State

PASSED, FAULT, REFUSED = 0, 1, 2
_RECORDED_WITHIN_S = 10
"""Most seconds that a run waits for its private server to record its tasks."""
FlowName = Literal["preflight", "calibrate", "train", "scale_up"]


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """How a run ended.

    Attributes:
        exit_code: 0 passed, 2 a gate failed or an input was rejected, 1 a fault.
        state_name: the flow run's final state, for example `TicketIssued`, `PolicyImproved` or `GatesFailed`.
        message: one sentence that says why.
        flow_run_url: its page in the UI; empty if its server has ended (`make serve` shows it again).
    """

    exit_code: int
    state_name: str
    message: str
    flow_run_url: str


def run_flow(name: FlowName, *, verbose: bool = False, **flow_parameters: Any) -> FlowOutcome:
    """Run a flow in this process.

    Args:
        verbose: show Prefect's own log on stderr; the UI has the whole log in any case.

    Raises:
        ConfigError: when the workspace is not a folder, the environment names an unusable proxy, or a file in the
            current folder sets Prefect.
        RC1Error: when another run holds the workspace.
        ServerFault: when the private server does not start, or the server is lost during the run.
        Exception: the flow's own error, when it ended with a fault.
    """
    workspace = Path(flow_parameters.get("workspace") or default_root()).resolve()
    if workspace.exists() and not workspace.is_dir():
        raise ConfigError(f"--workspace {workspace}: is a file, expected a folder")
    check_proxies()
    check_prefect_files(Path.cwd())
    check_free(Workspace(workspace))  # before a second server is started over the same database
    report_progress("Prefect server", 0, 1)

    def load(server: Access) -> None:
        # Before Prefect is imported, because it reads its settings and sets up its log on import.
        os.environ.update(settings(workspace, server.url, server.password))
        os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "INFO" if verbose else "CRITICAL"
        import_module(f"flows.{name}")

    with _server(workspace, load) as (server, lasting):
        url = server.url
        report_progress("Prefect server", 1, 1, f"{url}/runs" if lasting else "private, ends with this run")
        with _losing(url):
            return _outcome(_run(name, workspace, server, flow_parameters), f"{url}/runs/flow-run" if lasting else "")


@contextmanager
def _server(workspace: Path, load: Callable[[Access], None]) -> Iterator[tuple[Access, bool]]:
    """Yield a server for the workspace, and whether it outlasts the run.

    `load(server)` is called once, while a private server starts, since both take seconds of one core.
    """
    serving = running_server(workspace)
    if serving is not None:
        load(serving)
        yield serving, True
        return
    private = start_server(workspace, free_port(), meanwhile=load)
    try:
        yield private, False
    finally:
        private.stop()


@contextmanager
def _losing(url: str) -> Iterator[None]:
    """Replace Prefect's error about an unreachable server with a sentence.

    Raises:
        ServerFault: when the block failed and the server no longer answers.
    """
    try:
        yield
    except RC1Error:
        raise
    except Exception as error:
        if healthy(url):
            raise
        raise ServerFault(
            f"the Prefect server at {url} ended during the run; files are written whole or not at all, so run the "
            f"command again"
        ) from error


def _run(name: FlowName, workspace: Path, server: Access, flow_parameters: dict[str, Any]) -> State[Any]:
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        PREFECT_LOCAL_STORAGE_PATH,
        temporary_settings,
    )

    flow = getattr(import_module(f"flows.{name}"), name)
    here = settings(workspace, server.url, server.password)
    # For a second run in one process, in which Prefect still has the first run's settings.
    chosen: dict[Any, Any] = {
        PREFECT_API_URL: here["PREFECT_API_URL"],
        PREFECT_API_AUTH_STRING: here["PREFECT_API_AUTH_STRING"],
        PREFECT_LOCAL_STORAGE_PATH: here["PREFECT_LOCAL_STORAGE_PATH"],
    }
    began = datetime.now(UTC)
    with temporary_settings(chosen):
        state: State[Any] = flow(**flow_parameters, return_state=True)
        APILogHandler().flush()
        EventsWorker.drain_all()
        if isinstance(server, Server) and state.name not in ("Failed", "Crashed"):  # a fault may come before any task
            _wait_for_records(began)
    return state


def _wait_for_records(began: datetime) -> None:
    """Wait until the server has recorded this run's task runs: one that ends while it records them loses them.

    Nothing says how many are to come, so it waits until a second brings no other one and all have ended.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import TaskRunSort

    seen = None
    for _ in range(_RECORDED_WITHIN_S):
        with get_client(sync_client=True) as client:
            newest = client.read_task_runs(sort=TaskRunSort.EXPECTED_START_TIME_DESC, limit=200)
        runs = [run for run in newest if run.created is not None and run.created >= began]
        now = {(run.id, run.state_type) for run in runs}
        if now == seen and all(run.state is not None and run.state.is_final() for run in runs):
            return
        seen = now or None
        time.sleep(1)  # of the client alone: the server goes on recording
    report_progress("Prefect server", 1, 1, "has not recorded every task: its page of this run may lack some")


def _outcome(state: State[Any], pages: str) -> FlowOutcome:
    """Return how a run ended, with its page below `pages`, if there are any.

    Raises:
        Exception: the flow's own error, when it ended with a fault.
    """
    from tasks.endings import FAULT as GATES_FAULTED
    from tasks.endings import NOT_PASSED, raised_by

    refused = state.is_failed() and state.name in NOT_PASSED
    if not refused and state.name != GATES_FAULTED and (fault := raised_by(state)) is not None:
        raise fault
    return FlowOutcome(
        exit_code=PASSED if state.is_completed() else REFUSED if refused else FAULT,
        state_name=state.name or state.type.value,
        message=state.message or "",
        flow_run_url=f"{pages}/{state.state_details.flow_run_id}" if pages else "",
    )
