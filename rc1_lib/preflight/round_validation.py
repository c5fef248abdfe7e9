"""Whether a round's report earns a ticket: what follows from configuration, code and files is worked out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rc1_lib.config.file import departures
from rc1_lib.preflight.gates import BY_NAME, gates_of_round, not_applicable
from rc1_lib.preflight.rounds import report_passed
from rc1_lib.provenance.code import code_sha256
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import sha256_json


def round_faults(run: Run, report: Mapping[str, Any], number: int, files: Mapping[str, Any]) -> list[str]:
    """Why a round's report is none that this run could have earned.

    Args:
        run: its configuration.
        report: of the round; empty where there is none.
        number: the round.
        files: path and SHA-256 of what the ticket is about, by name.
    """
    if not report_passed(report, number):
        return [f"round {number} has not passed by its own report"]
    return [*_of_another_run(run, report, number), *_read(report, number, files)]


def _of_another_run(run: Run, report: Mapping[str, Any], number: int) -> Iterator[str]:
    if report.get("round") != f"round{number}":
        yield f"the report of round {number} is one of {report.get('round')}"
    if report.get("profile") != run.config.profile:
        yield f"round {number} is of profile '{report.get('profile')}', not '{run.config.profile}'"
    if report.get("code_sha256") != code_sha256():
        yield f"round {number} was run by other code"
    if report.get("config_sha256") != run.config_sha256:
        yield f"round {number} was run with another configuration"
        return
    waived = {gate["name"]: gate["waiver"] for gate in report["gates"] if gate["waiver"]}
    named = run.config.gates.waivers
    # A gate that reads no file may waive itself: `git`, where nothing is asked of it.
    unnamed = [name for name, why in waived.items() if named.get(name) != why and BY_NAME[name].reads]
    if report.get("waived") != waived or unnamed:
        yield f"round {number} waives what the configuration does not"
    left_out = {gate["name"]: gate["not_applicable"] for gate in report["gates"] if gate.get("not_applicable")}
    wanted = {spec.name: why for spec in gates_of_round(number) if (why := not_applicable(run).get(spec.name))}
    if left_out != wanted or report.get("not_applicable") != wanted:
        yield f"round {number} calls other gates not applicable than the configuration does"
    if sha256_json(report.get("thresholds_changed")) != sha256_json(departures(run.config, published_config())):
        yield f"round {number} does not tell what was loosened"


def _read(report: Mapping[str, Any], number: int, files: Mapping[str, Any]) -> Iterator[str]:
    said = report.get("files") or {}
    for name, one in files.items():
        if said.get(name) != one or one["sha256"] is None:
            yield f"{one['path']} is not what round {number} read"
