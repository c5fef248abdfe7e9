"""The scale-up: the pool grows from size to size, with checks before and after each; nothing runs after a failed gate.

Run it with `rc1 scale-up` or `prefect deployment run rc1/scale-up`. The next run continues a killed or failed one: a
size that passed is recognised by its files, the judge and the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.failures import leave_failure
from flows.run_names import named
from rc1_lib.check_words import round_sentence
from rc1_lib.errors import RC1Error
from rc1_lib.gates.gate_list import check_waivers
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.provenance.derived import Build
from rc1_lib.records import PASSING, GateResult
from rc1_lib.run import Run, open_recorded_run
from rc1_lib.scale_up.conditions import check_may_grow
from rc1_lib.scale_up.looks import AFTER, BEFORE, Look, unreached
from rc1_lib.scale_up.sizes import Step, steps
from rc1_lib.workspace.folder import holding
from tasks.data import seed
from tasks.endings import FAULT, GATES_FAILED, ONE_AT_A_TIME, REFUSED, SCALED_UP, outcome
from tasks.gates import faulted, read_verdict
from tasks.scale_up import gate_of_size, green_before, grown, keep, report_scale_up


@flow(
    name="rc1",
    flow_run_name=named("scale-up"),
    task_runner=ONE_AT_A_TIME,
    on_failure=[leave_failure],
    on_crashed=[leave_failure],
)
def scale_up(
    profile: str | None = None,
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    build: Build = "auto",
) -> State[Any]:
    """Grow the pool through `scale_up.sizes`, and stop at the first failed gate.

    It needs a valid ticket, and a nightly with the same settings that passed within the last day.

    Args:
        profile: `local` or `prod`; default: `RUN_MODE`, else that of the file.
        config: the configuration file; default: the settings that the workspace has recorded, else the profile's own.
        overrides: settings `a.b=c` that override the file. Never an API key: these come from the environment.
        workspace: where everything is read and written; default: the current folder, if it is a workspace.
        build: `auto` builds files that are missing or out of date, `always` everything, `never` no pool.
    """
    try:
        run = open_recorded_run(profile, config, overrides, workspace)
        check_waivers(run)
        ahead = steps(run)
        check_may_grow(run)
        return _scale_up(run, ahead, build)
    except RC1Error as refusal:
        return Failed(name=REFUSED, message=str(refusal))


def _scale_up(run: Run, ahead: Sequence[Step], build: Build) -> State[Any]:
    with holding(run.workspace, "a scale-up"):
        outcome(seed(run, build, return_state=True))
    looks: list[Look] = []
    for step in ahead:
        found, fault = _passed_before(run, step, build), ""
        if not found:
            with holding(run.workspace, "a scale-up"):
                verify_ticket(run)  # again: a size may have taken hours, and the ticket may be revoked
                found, fault = _reached(run, step, build)
        looks += found
        sentence = _sentence(run, looks)
        report_scale_up(run, looks, sentence)
        if not looks[-1].passed:
            return Failed(name=FAULT if fault else GATES_FAILED, message=sentence)
    return Completed(name=SCALED_UP, message=sentence)


def _passed_before(run: Run, step: Step, build: Build) -> Sequence[Look]:
    found: Sequence[Look] = () if build == "always" else outcome(green_before(run, step, return_state=True))
    return found


def _reached(run: Run, step: Step, build: Build) -> tuple[list[Look], str]:
    """Return the checks before and after a size, up to the first failed gate, and the error, if any."""
    looks = []
    if step.smaller:
        look, fault = _look(run, step, again=True)
        if not look.passed:
            return [look], fault
        looks.append(look)
    outcome(grown(run, step.size, build, return_state=True))
    look, fault = _look(run, step, again=False)
    looks.append(look)
    if look.passed:
        keep(run, step, looks)
    return looks, fault


def _look(run: Run, step: Step, *, again: bool) -> tuple[Look, str]:
    look, names = Look(step.smaller if again else step.size, again, ()), BEFORE if again else AFTER
    results: list[GateResult] = []
    fault = ""
    for name in names:
        state = gate_of_size(run, step, name, again, look.title, return_state=True)
        result, fault = read_verdict(state.result(raise_on_failure=False))
        results.append(faulted(name, fault) if result is None else result)
        if results[-1].status not in PASSING:
            break
    return replace(look, results=(*results, *unreached(results, names))), fault


def _sentence(run: Run, looks: Sequence[Look]) -> str:
    """Return `5,000 of 30,000 rows reached, every gate passed at 1,000, 5,000`, or where it stopped, and why."""
    newest = looks[-1]
    if not newest.passed:
        return f"stopped at {newest.title} rows: {round_sentence(newest.results)}"
    passed = ", ".join(f"{look.size:,}" for look in looks if not look.again)
    alone = "; scale_up.sizes has no smaller size, so none was checked" if len(run.config.scale_up.sizes) == 1 else ""
    return f"{newest.size:,} of {run.config.pool.n:,} rows reached, every gate passed at {passed}{alone}"
