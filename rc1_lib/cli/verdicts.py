"""Evaluate gates outside a round, write a report with the rows at fault, and print it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.check_words import failed_lines
from rc1_lib.cli import tables
from rc1_lib.cli.endings import again, end, judged
from rc1_lib.cli.session import Session
from rc1_lib.records import PASSING, GateResult, not_applicable_of, waivers_of
from rc1_lib.task_specs import task_names

if TYPE_CHECKING:
    from rc1_lib.gate_report import GateReport
    from rc1_lib.run import Run

REPORTS = "reports/*.json"
"""Matches, among others, the reports of a calibration's stages."""
_WHOLE = ("mix",)
"""Gates whose checks of single tasks are kept whatever --by-task says."""


def judge(session: Session, run: Run, gates: Sequence[str], tasks: Collection[str] | None = None) -> list[GateResult]:
    """Evaluate gates on the files of `run`; of checks on single tasks, keep those of `tasks` (None: all)."""
    from rc1_lib.evidence import Evidence
    from rc1_lib.gates.gate_list import evaluate

    evidence = Evidence(run)
    results = []
    with session.progress("judging") as report:
        for done, name in enumerate(gates):
            report(done, len(gates))
            results.append(_of_tasks(evaluate(name, evidence, 1), task_names() if tasks is None else tasks))
    return results


def conclude(
    session: Session,
    run: Run,
    title: str,
    results: Sequence[GateResult],
    out: str,
    further: dict[str, Any] | None = None,
    *,
    after_fail: str = "",
) -> int:
    """Write and print a report of gates, and return the exit code.

    Args:
        session: the command's session.
        title: what was judged.
        out: the report's path below the workspace; rows at fault are written next to it.
        after_fail: the last line if one failed.
    """
    from rc1_lib.config.file import departures
    from rc1_lib.preflight.round_report import write_offenders
    from rc1_lib.run import published_config
    from rc1_lib.workspace.artifacts import now, write_json

    gates = []
    for result in results:
        file = Path(out).with_name(f"{Path(out).stem}_{result.name}_offenders.jsonl").as_posix()
        listed = write_offenders(run, file, result)
        gates.append({**result.to_dict(), "offenders": len(result.offenders), "offenders_file": listed})
    passed = all(result.status in PASSING for result in results)
    report: dict[str, Any] = {
        "pass": passed,
        "time": now(),
        "profile": run.config.profile,
        "config_sha256": run.config_sha256,
        "waived": waivers_of(results),
        "not_applicable": not_applicable_of(results),
        "thresholds_changed": departures(run.config, published_config()),
        "gates": gates,
        **(further or {}),
    }
    write_json(run.workspace.path(out), report)
    failed = chain(*(failed_lines(gate, gate["offenders_file"] or "") for gate in tables.errors_once(gates)))
    notes = tables.notes(report, out)
    ending = judged(title, gates, run.workspace.path(out), after_fail=after_fail)
    if len(gates) == 1 and gates[0]["error"] and not gates[0]["checks"]:  # its error is all that there is to say
        session.show(*notes, *failed)
        ending = replace(ending, failures=())
    else:
        session.show(tables.gates_table(title, gates), *failed, *tables.undecided_lines(gates), *notes)
    return end(session, ending, {**report, "report": out}, 0 if passed else 2)


def show_step(
    session: Session,
    run: Run,
    outcome: GateReport,
    *command: str,
    further: dict[str, Any] | None = None,
) -> int:
    """Print a step's verdict, what failed, and the paths of its report and pictures; return the exit code.

    After a fail the last line names this command, `command`. `further` is added to the JSON document.
    """
    gate = outcome.body["gate"]
    session.show(
        *tables.verdict("verdict", gate),
        *(f"picture, {title}: {run.workspace.path(file)}" for title, file in outcome.plots.items()),
    )
    after_fail = again(session, *command) if command else ""
    ending = judged(gate["name"], [gate], run.workspace.path(outcome.report), after_fail=after_fail)
    document = {**outcome.body, "report": outcome.report, **(further or {})}
    return end(session, ending, document, 0 if outcome.passed else 2)


def stages_of(reports: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return gate, pictures and report of each stage of the calibration in `reports`."""
    from rc1_lib.calibration.stages import REPORT

    return [
        {**one, "plots": reports.get(one["report"], {}).get("plots", {})}
        for one in reports.get(REPORT, {}).get("stages", ())
    ]


def show_stages(session: Session, run: Run, done: Sequence[dict[str, Any]]) -> None:
    """Print the stages of a calibration: their table, what failed, what to do, and where the reports are."""
    from rc1_lib.gate_report import PLOTS

    if not done:
        return
    session.show(tables.gates_table("calibration", [one["gate"] for one in done]))
    for one in done:
        session.show(*failed_lines(one["gate"], ""), *tables.undecided_lines([one["gate"]]))
    session.show(
        *(f"report, {one['gate']['name']}: {run.workspace.path(one['report'])}" for one in done if one["report"])
    )
    session.show(f"pictures: {run.workspace.path(PLOTS)}")


def _of_tasks(result: GateResult, tasks: Collection[str]) -> GateResult:
    others = tuple(f"[{task}]" for task in task_names() if task not in tasks)
    if result.name in _WHOLE or not others:
        return result
    return replace(result, checks=tuple(check for check in result.checks if not check.name.endswith(others)))
