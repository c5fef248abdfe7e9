"""The preflight: data, calibration if it is due, round 1, round 2, ticket.

The nightly re-check is the same flow with other parameters.

Run it with `rc1 preflight`, or with `prefect deployment run rc1/preflight` while `rc1 serve` runs.
Nothing needs cleaning up: a killed run leaves only complete files, and the next run continues from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal
from uuid import UUID

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed

from flows.calibrate import Calibrated, calibrated, ending
from flows.failures import leave_failure
from flows.missed_nights import is_missed
from flows.rounds import JudgedRound, judge_round
from flows.run_names import named
from rc1_lib.calibration.derived import JUDGE_BASELINE, WEIGHTS
from rc1_lib.calibration.judge_baseline import check_baseline
from rc1_lib.calibration.stages import is_due
from rc1_lib.check_words import round_sentence
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.forecast.judge_cost import check_preflight_cost
from rc1_lib.gates.gate_list import check_waivers, gates_of_round, round_name, round_title, waiting
from rc1_lib.gates.spec import NIGHTLY
from rc1_lib.preflight.nights import Night, NightOutcome
from rc1_lib.preflight.preconditions import check_preconditions
from rc1_lib.preflight.ticket import check_same_settings
from rc1_lib.preflight.ticket_key import ticket_key
from rc1_lib.provenance.derived import Build
from rc1_lib.records import GateResult
from rc1_lib.run import Run, open_recorded_run, open_run, workspace_at
from rc1_lib.workspace.artifacts import FileState
from rc1_lib.workspace.file_hashes import hashes_known
from rc1_lib.workspace.folder import holding
from tasks.calibrate import judge_baseline
from tasks.data import prepare
from tasks.endings import (
    FAULT,
    GATES_FAILED,
    ONE_AT_A_TIME,
    REFUSED,
    ROUNDS_PASSED,
    TICKET_CONFIRMED,
    TICKET_ISSUED,
    outcome,
)
from tasks.keys import provide_scorer_key
from tasks.reports import issue, report_nightly, report_round, revoke, verify

RoundNumber = Literal[1, 2]


@flow(
    name="rc1",
    flow_run_name=named("preflight"),
    task_runner=ONE_AT_A_TIME,
    on_failure=[leave_failure],
    on_crashed=[leave_failure],
)
def preflight(
    profile: str | None = None,
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    rounds: Sequence[RoundNumber] = (1, 2),
    build: Build = "auto",
    refresh: bool = False,
    ticket: bool = True,
    recheck: bool = False,
    judge_cost_agreed: bool = False,
) -> State[Any]:
    """Build what is missing, run the gates of both rounds, and issue the ticket, or stop after the first failed round.

    Args:
        profile: `local` or `prod`; default: `RUN_MODE`, else that of the file.
        config: the configuration file; default: the profile's own.
        overrides: settings `a.b=c` that override the file. Never an API key: these come from the environment.
        workspace: where everything is read and written; default: the current folder, if it is a workspace.
        rounds: which rounds to run.
        build: `auto` builds what is missing or out of date, `always` everything, `never` nothing.
        refresh: evaluate every gate in every round, even if it passed round 1 on the same bytes.
        ticket: issue the ticket if round 2 was run and everything passed.
        recheck: for the nightly: verify the existing ticket first, run the gates without writing their reports,
            which the ticket pins, and issue no ticket. Without `config` it takes the settings that the workspace has
            recorded. Other settings than the ticket's are an error and revoke nothing.
        judge_cost_agreed: whether a person has agreed to what the judge may cost; otherwise more than
            `judge.ask_above_usd` is an error before the first call.
    """
    if recheck and is_missed(UUID(str(flow_run.id))):
        return Cancelled(message="missed; a newer run of this schedule is due, and checks the same")
    night = Night(str(flow_run.id), workspace_at(workspace)) if recheck else None
    with night or nullcontext():
        try:
            if night is None:
                run = open_run(profile=profile, config=config, overrides=overrides, workspace=workspace)
            else:
                run = open_recorded_run(profile, config, overrides, workspace)
            provide_scorer_key(run)
            if night is not None:
                night.run = run
            if not rounds:
                raise ConfigError("rounds: found none, expected 1, 2 or both; a run without rounds proves nothing")
            check_waivers(run)  # before anything is written
            check_preconditions(run, calibrates=build != "never", ticket=ticket and 2 in rounds)
            with holding(run.workspace, "a preflight" if night is None else "the nightly re-check"):
                if night is not None:
                    return _nightly(run, night, rounds, build, refresh)
                with nullcontext() if refresh else hashes_known():
                    return _preflight(run, rounds, build, refresh, ticket, judge_cost_agreed)
        except RC1Error as refusal:
            if night is not None:
                night.broke_off(NightOutcome.REFUSED, str(refusal))
            return Failed(name=REFUSED, message=str(refusal))


def _preflight(
    run: Run,
    rounds: Sequence[RoundNumber],
    build: Build,
    refresh: bool,
    ticket: bool,
    judge_cost_agreed: bool,
) -> State[Any]:
    if build != "never" and JUDGE_BASELINE.applies(run):
        check_baseline(run)
    prepare(run, build)
    due = is_due(run, build)
    check_preflight_cost(run, rounds=set(rounds), agreed=judge_cost_agreed, calibrates=due)
    done = calibrated(run) if due else None
    if done is not None and (failed := ending(done)):
        return _after_failed_calibration(run, done, failed, min(rounds))
    recorded = None
    if JUDGE_BASELINE.applies(run) and WEIGHTS.state(run) is FileState.FRESH:  # else round 1 fails
        recorded = judge_baseline(run, build, return_state=True)
    judged: list[JudgedRound] = []
    reports: dict[int, Mapping[str, Any]] = {}
    for number in sorted(set(rounds)):
        judged.append(judge_round(run, number, before=_taken_over(judged, refresh)))
        _revoke_if_failed(run, judged[-1])
        reports[number] = report_round(run, number, judged[-1].results) or {}
        if not judged[-1].passed:
            return _failed(judged[-1])
    sentence = _passed_sentence(judged)
    if ticket and 2 in rounds:
        if recorded is not None:
            outcome(recorded)  # the user can fix what prevented the recording, and the rounds came first
        issued = outcome(issue(run, reports, return_state=True))
        return Completed(name=TICKET_ISSUED, message=f"{sentence}; ticket until {issued['expires']}")
    return Completed(name=ROUNDS_PASSED, message=sentence)


def _taken_over(judged: Sequence[JudgedRound], refresh: bool) -> Sequence[GateResult]:
    """Return the verdicts that the next round may reuse."""
    return judged[-1].results if judged and not refresh else ()


def _after_failed_calibration(run: Run, done: Calibrated, failed: State[Any], number: RoundNumber) -> State[Any]:
    """Evaluate the free gates of round 1 that do not depend on the weights, so that one run reports everything."""
    judged = judge_round(run, number, waiting=waiting(run, number, done.failed))
    report_round(run, number, judged.results)
    return Failed(
        name=FAULT if judged.faults else failed.name,
        message=done.message(f"round {number}: {round_sentence(judged.results)}"),
    )


def _nightly(
    run: Run,
    night: Night,
    rounds: Sequence[RoundNumber],
    build: Build,
    refresh: bool,
) -> State[Any]:
    check_same_settings(run)
    ticket_key(run)  # a key that cannot be read says nothing about the ticket, so it revokes none
    try:
        night.ticket_sha256 = outcome(verify(run, return_state=True))["ticket_sha256"]
    except RC1Error as refusal:
        revoke(run, f"nightly re-check: {refusal}")
        _record_night(run, night, str(refusal), False, {})
        return Failed(name=GATES_FAILED, message=str(refusal))
    prepare(run, build)
    judged: list[JudgedRound] = []
    for number in sorted(set(rounds)):
        judged.append(judge_round(run, number, before=_taken_over(judged, refresh)))
        _revoke_if_failed(run, judged[-1])
        report_round(run, number, judged[-1].results, write=False)
        if not judged[-1].passed:
            break
    judged.append(_nightly_gates(run, judged[-1]))
    found = {round_name(one.number): one.results for one in judged}
    judged = judged[: 1 + next((place for place, one in enumerate(judged) if not one.passed), len(judged))]
    if not judged[-1].passed:
        _record_night(run, night, round_sentence(judged[-1].results), False, found)
        return _failed(judged[-1])
    sentence = f"the ticket is valid; {_passed_sentence(judged)}"
    _record_night(run, night, sentence, True, found)
    return Completed(name=TICKET_CONFIRMED, message=sentence)


def _record_night(run: Run, night: Night, verdict: str, passed: bool, found: Mapping[str, list[GateResult]]) -> None:
    night.ended(NightOutcome.PASSED if passed else NightOutcome.FAILED, verdict, found)
    report_nightly(run, verdict, passed, found)


def _nightly_gates(run: Run, before: JudgedRound) -> JudgedRound:
    """Evaluate the gates that run only in the nightly; after a failed round they wait, since they call the judge."""
    why = f"{round_title(before.number)}, which failed: no calls are made after it"
    unreached = {} if before.passed else {spec.name: why for spec in gates_of_round(NIGHTLY)}
    judged = judge_round(run, NIGHTLY, waiting=unreached)
    if before.passed:
        _revoke_if_failed(run, judged)
    report_round(run, NIGHTLY, judged.results, write=False)
    return judged


def _revoke_if_failed(run: Run, judged: JudgedRound) -> None:
    """Revoke a ticket that the newest evidence contradicts, before anything is reported.

    So what fails or is killed afterwards leaves no ticket valid.
    """
    if not judged.passed:
        revoke(run, _failed_sentence(judged))


def _failed(judged: JudgedRound) -> State[Any]:
    return Failed(name=FAULT if judged.faults else GATES_FAILED, message=_failed_sentence(judged))


def _failed_sentence(judged: JudgedRound) -> str:
    return f"{round_title(judged.number)}: {round_sentence(judged.results)}"


def _passed_sentence(judged: Sequence[JudgedRound]) -> str:
    return "; ".join(f"{round_title(one.number)}: {round_sentence(one.results)}" for one in judged)
