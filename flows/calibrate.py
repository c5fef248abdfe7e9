"""The calibration: shadow run, weights, ablation, shadow run again; each a gate, nothing runs behind a red one.

Run it with `rc1 calibrate`, or with `prefect deployment run rc1/calibrate`. The preflight runs the same stages when the
weights are missing or out of date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.data import prepare
from flows.endings import GATES_FAILED, ONE_AT_A_TIME, WEIGHTS_ADOPTED
from rc1_lib.errors import RC1Error
from rc1_lib.preflight.calibrate import STAGES
from rc1_lib.preflight.data import Build
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, open_run
from tasks.calibrate import adopt_weights, report_calibration, stage, verdict
from tasks.endings import REFUSED, outcome
from tasks.reports import revoke
from tasks.sentences import round_sentence


@flow(name="rc1", task_runner=ONE_AT_A_TIME)
def calibrate(
    profile: str | None = "local",
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    build: Build = "auto",
    on_red_revoke: bool = True,
) -> State[Any]:
    """Find the weights of the new reward and write them, once every stage is green.

    Args:
        profile: `local` or `prod`.
        config: the configuration file; default: the profile's own.
        overrides: settings `a.b=c` that overrule the file. Never a key: keys come from the environment.
        workspace: where everything is read and written; default: the project's root.
        build: `auto` builds the data that are missing or out of date, `always` everything, `never` nothing.
        on_red_revoke: revoke an existing ticket when something is red: the newest evidence says no.
    """
    try:
        run = open_run(profile=profile, config=config, overrides=overrides, workspace=workspace)
        prepare(run, build)
        results = calibrated(run)
        return ending(run, results, on_red_revoke) or Completed(
            name=WEIGHTS_ADOPTED, message=f"calibration: {round_sentence(results)}; weights: {run.config.weights}"
        )
    except RC1Error as refusal:
        return Failed(name=REFUSED, message=str(refusal))


def calibrated(run: Run) -> list[GateResult]:
    """Run the stages up to the first red one, and adopt the weights when all are green; returns the verdicts.

    Raises:
        RC1Error: when the weights cannot be written.
        Exception: a stage's own, when it ended by a fault.
    """
    results: list[GateResult] = []
    candidate: dict[str, Any] = {}
    for one in STAGES:
        state = stage(run, one.name, candidate.get("weights"), return_state=True)
        result, body = verdict(one.name, state)
        results.append(result)
        if result.status is not Status.PASSED:
            break
        if one.name == "calibration":
            candidate = {"weights": body["weights"], "report": body["report"]}
    else:
        outcome(adopt_weights(run, candidate["weights"], candidate["report"], return_state=True))
    report_calibration(run, results)
    return results


def ending(run: Run, results: Sequence[GateResult], on_red_revoke: bool) -> State[Any] | None:
    """The flow's red ending; None when every stage is green."""
    if all(result.status is Status.PASSED for result in results):
        return None
    sentence = f"calibration: {round_sentence(results)}"
    if on_red_revoke:
        revoke(run, sentence)
    return Failed(name=GATES_FAILED, message=sentence)
