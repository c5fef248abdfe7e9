"""One Prefect task run per gate: its verdict as a named state, cached by the content of all that decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import State, task
from prefect.context import TaskRunContext
from prefect.states import Completed, Failed
from prefect.transactions import get_transaction

from rc1_lib.artifacts import sha256_json
from rc1_lib.evidence import Evidence
from rc1_lib.preflight.gates import BY_NAME, evaluate, gates_of_round, round_name, round_title
from rc1_lib.preflight.rounds import fingerprints
from rc1_lib.progress import tell
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from tasks.endings import RETRIES, RETRY_DELAY_S, retry_when_transient
from tasks.keys import provide_scorer_key
from tasks.sentences import gate_sentence

Files = dict[str, str | None]
"""Path as reports show it -> SHA-256; None where the file is missing."""

AllFiles = dict[str, tuple[str, str | None]]
"""Name of `Evidence.names` -> (path as reports show it, SHA-256 or None)."""

PASSED, WAIVED, FAILED, ERROR = "GatePassed", "GateWaived", "GateFailed", "GateError"
CACHED = "Cached"
"""Prefect's own name for the state of a cached verdict. Only passed ones are cached, so it means GatePassed."""


def files_now(run: Run) -> AllFiles:
    """Fingerprints, as of now, of every file of the preflight; each is read once."""
    return {name: (found["path"] or name, found["sha256"]) for name, found in fingerprints(Evidence(run)).items()}


def files_read(gate_name: str, files: AllFiles) -> Files:
    """The part of `files_now` that one gate reads: where it is waived, what it alone reads is not there."""
    return dict(files[file] for file in BY_NAME[gate_name].reads if file in files)


def gate_key(_context: TaskRunContext | None, parameters: Mapping[str, Any]) -> str | None:
    """The cache key: gate, round, content of the files read, effective configuration, and code. None: never cached.

    A gate that reads the world (disk, git, a provider), that is waived, or that misses a file is evaluated every time.
    """
    run: Run = parameters["run"]
    name, number, files = parameters["name"], parameters["number"], parameters["files"]
    if BY_NAME[name].reads_world or name in run.config.gates.waivers or None in files.values():
        return None
    decisive = {
        "files": files,
        "profile": run.config.profile,
        "config": run.config_sha256,
        "code": parameters["code"],
    }
    return f"rc1-{round_name(number)}-{name}-{sha256_json(decisive)}"


@task(
    name="gate",
    task_run_name="{name}",
    cache_key_fn=gate_key,
    persist_result=True,
    result_serializer="json",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAY_S,
    retry_condition_fn=retry_when_transient,
)
def gate(run: Run, name: str, number: int, files: Files, code: str, anew: bool = False) -> State[dict[str, Any]]:
    """Evaluate one gate.

    Args:
        run: whose files and configuration.
        name: which gate.
        number: the round.
        files: the fingerprints that `files_read` gave; part of the cache key.
        code: fingerprint of the code; part of the cache key.
        anew: compute it, also where this process has found it green before.

    Returns:
        A state whose name is the verdict, whose message says why, and whose data is `GateResult.to_dict()`.
    """
    names = [spec.name for spec in gates_of_round(number)]
    if "judge_spec" in BY_NAME[name].reads:
        provide_scorer_key(run)
    result = evaluate(name, Evidence(run), number, anew=anew)
    tell(round_title(number), names.index(name) + 1, len(names), f"{name} {result.status.value}")
    if result.status is not Status.PASSED:
        leave_uncached()
    return state_of(result)


def state_of(result: GateResult) -> State[dict[str, Any]]:
    """The verdict as Prefect shows it: the type gives the colour, the name the badge."""
    data, sentence = result.to_dict(), gate_sentence(result)
    match result.status:
        case Status.PASSED:
            return Completed(name=PASSED, message=sentence, data=data)
        case Status.WAIVED:
            return Completed(name=WAIVED, message=sentence, data=data)
        case Status.FAILED:
            return Failed(name=FAILED, message=sentence, data=data)
        case Status.ERROR | Status.WAITING:
            return Failed(name=ERROR, message=sentence, data=data)


def read_verdict(body: object) -> tuple[GateResult | None, str]:
    """What a task's result holds: its verdict, or None and the fault that kept it from one."""
    if isinstance(body, BaseException):
        return None, f"{type(body).__name__}: {body}"
    try:
        return GateResult.from_dict(body), ""  # type: ignore[arg-type]
    except (KeyError, TypeError):
        return None, "its task left no verdict"


def faulted(name: str, fault: str) -> GateResult:
    """The verdict on a gate that a fault of program or machine kept from being evaluated: an error."""
    return GateResult(name, error=f"a fault kept it from being evaluated: {fault}")


def leave_uncached() -> None:
    """Keep what the task returns out of the cache.

    Prefect stores whatever a task returns under its key, a Failed state's data too, and would show it next time as
    `Cached`, which is green.
    """
    transaction = get_transaction()
    if transaction is not None:
        transaction.write_on_commit = False
