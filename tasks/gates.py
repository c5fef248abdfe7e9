"""One Prefect task run per gate: its verdict as a named state.

Prefect does not store verdicts, because anyone who can write to the workspace could write a pass.
"""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.states import Completed, Failed

from rc1_lib.check_words import gate_sentence
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import BY_NAME, evaluate, files_of, gates_of_round, round_title
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from tasks.endings import retried
from tasks.keys import provide_scorer_key

PASSED, WAIVED, NOT_APPLICABLE = "GatePassed", "GateWaived", "GateNotApplicable"
FAILED, ERROR = "GateFailed", "GateError"


def _title(parameters: dict[str, Any]) -> str:
    """Return the name of a gate's run in the UI.

    The round is not a tag, because for tagged runs Prefect asks the server for concurrency limits, which often took two
    seconds directly after a round.
    """
    return f"{round_title(parameters['number'])}: {parameters['name']}"


@retried(name="gate", task_run_name=_title)
def gate(run: Run, name: str, number: int, before: GateResult | None = None) -> State[dict[str, Any]]:
    """Evaluate one gate.

    Args:
        run: supplies files and configuration.
        before: its result in the previous round, reused if the gate only reads files and their bytes are the same.

    Returns:
        A state with the verdict as its name, the reason as its message, and the data `GateResult.to_dict()`.
    """
    names = [spec.name for spec in gates_of_round(number)]
    if "judge_spec" in files_of(BY_NAME[name], run):
        provide_scorer_key(run)
    result = evaluate(name, Evidence(run), number, before)
    report_progress(round_title(number), names.index(name) + 1, len(names), f"{name} {result.status.value}")
    return state_of(result)


def state_of(result: GateResult) -> State[dict[str, Any]]:
    """Return the verdict as a Prefect state; its type sets the colour, its name the badge."""
    data, sentence = result.to_dict(), gate_sentence(result)
    match result.status:
        case Status.PASSED:
            return Completed(name=PASSED, message=sentence, data=data)
        case Status.WAIVED:
            return Completed(name=WAIVED, message=sentence, data=data)
        case Status.NOT_APPLICABLE:
            return Completed(name=NOT_APPLICABLE, message=sentence, data=data)
        case Status.FAILED:
            return Failed(name=FAILED, message=sentence, data=data)
        case Status.ERROR | Status.WAITING:
            return Failed(name=ERROR, message=sentence, data=data)


def read_verdict(body: object) -> tuple[GateResult | None, str]:
    """Return the verdict in a task's result, or None and the error that prevented it."""
    if isinstance(body, BaseException):
        return None, f"{type(body).__name__}: {body}"
    try:
        return GateResult.from_dict(body), ""  # type: ignore[arg-type]
    except (KeyError, TypeError):
        return None, "its task left no verdict"


def faulted(name: str, fault: str) -> GateResult:
    """Return the verdict on a gate that could not be evaluated because of an error in program or machine."""
    return GateResult(name, error=f"a fault kept it from being evaluated: {fault}")
