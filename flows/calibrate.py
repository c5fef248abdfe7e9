"""The calibration: shadow run, weights, attack, ablation, shadow run again. Each is a gate; a failed one is the last.

Run it with `rc1 calibrate` or `prefect deployment run rc1/calibrate`. The preflight runs the same stages if the weights
are missing or out of date.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.failures import leave_failure
from flows.run_names import named
from rc1_lib.calibration.stages import (
    CLEARED,
    STAGES,
    Stage,
    Weights,
    check_overwriting,
    run_stages,
    stand_in_hint,
    unreached,
)
from rc1_lib.check_words import stages_sentence
from rc1_lib.errors import RC1Error
from rc1_lib.forecast.judge_cost import check_preflight_cost
from rc1_lib.gate_report import GateReport
from rc1_lib.gates.gate_list import check_waivers
from rc1_lib.preflight.preconditions import check_can_calibrate
from rc1_lib.provenance.derived import Build
from rc1_lib.records import GateResult
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.folder import holding
from tasks.calibrate import adopt_weights, read_report, report_calibration, stage
from tasks.data import prepare
from tasks.endings import FAULT, GATES_FAILED, ONE_AT_A_TIME, REFUSED, WEIGHTS_ADOPTED, outcome
from tasks.reports import revoke


@flow(
    name="rc1",
    flow_run_name=named("calibrate"),
    task_runner=ONE_AT_A_TIME,
    on_failure=[leave_failure],
    on_crashed=[leave_failure],
)
def calibrate(
    profile: str | None = None,
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    build: Build = "auto",
    judge_cost_agreed: bool = False,
) -> State[Any]:
    """Fit the weights of the calibrated reward, and write them if every stage passes.

    Args:
        profile: `local` or `prod`; default: `RUN_MODE`, else that of the file.
        config: the configuration file; default: the profile's.
        overrides: settings `a.b=c` that override the file. Never an API key: these come from the environment.
        workspace: where everything is read and written; default: the current folder, if it is a workspace.
        build: `auto` builds data that are missing or out of date, `always` everything, `never` nothing.
        judge_cost_agreed: whether a person has agreed to what the judge may cost; otherwise more than
            `judge.ask_above_usd` is an error before the first call.
    """
    try:
        run = open_run(profile=profile, config=config, overrides=overrides, workspace=workspace)
        check_waivers(run)  # before anything is written
        check_can_calibrate(run)
        with holding(run.workspace, "a calibration"):
            check_overwriting(run, rebuild=build == "always")
            prepare(run, build)
            check_preflight_cost(run, rounds=(), agreed=judge_cost_agreed)
            done = calibrated(run)
        return ending(done) or Completed(
            name=WEIGHTS_ADOPTED,
            message=f"{done.sentence}; weights: {run.config.weights if run.config.pays_judged_score else 'none'}",
        )
    except RC1Error as refusal:
        return Failed(name=REFUSED, message=str(refusal))


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The outcome of a calibration.

    Attributes:
        results: one verdict per stage, in order; after a failed one all others wait for it.
        fault: the error in program or machine that prevented an evaluation; empty if there was none.
        judge: a note that the judge is only a stand-in for these questions, if that may be why it failed; else empty.
    """

    results: list[GateResult]
    fault: str
    judge: str

    @property
    def failed(self) -> str:
        """The failed stage; empty if all passed."""
        return next((result.name for result in self.results if result.status not in CLEARED), "")

    @property
    def sentence(self) -> str:
        """How many stages passed, or which failed, and why."""
        return f"calibration: {stages_sentence(self.results, len(STAGES))}"

    def message(self, *further: str) -> str:
        """The message of a flow that ends here: the sentence, further findings, and a separate line about the judge."""
        return "\n".join(filter(None, ["; ".join([self.sentence, *further]), self.judge]))


def calibrated(run: Run) -> Calibrated:
    """Run the stages as tasks up to the first failure, and adopt the weights if all pass.

    A failure revokes the ticket before anything is reported.

    Raises:
        RC1Error: when the weights cannot be written.
    """
    done = run_stages(run, _as_task, adopt=_adopt_as_task)
    judged = [one.gate for one in done]
    results = [*judged, *unreached(judged)]
    found = Calibrated(results, done[-1].fault, stand_in_hint(run, results))
    if found.failed:
        revoke(run, found.sentence)
    report_calibration(run, results, {one.gate.name: one.report for one in done if one.report})
    return found


def _as_task(run: Run, one: Stage, weights: Weights | None) -> GateReport:
    return read_report(one.name, stage(run, one.name, weights, return_state=True))


def _adopt_as_task(run: Run, weights: Weights, report: str) -> None:
    outcome(adopt_weights(run, weights, report, return_state=True))


def ending(done: Calibrated) -> State[Any] | None:
    """The flow's failed state; None if every stage passed."""
    if not done.failed:
        return None
    return Failed(name=FAULT if done.fault else GATES_FAILED, message=done.message())
