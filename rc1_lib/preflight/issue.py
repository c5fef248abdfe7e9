"""Issuing a ticket, after two rounds that passed on the files, the code and the settings of this moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.calibration.weights_file import named_report, read_content
from rc1_lib.config.file import departures
from rc1_lib.config.foreign_gates import foreign_facts
from rc1_lib.errors import TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.preflight.preconditions import check_can_issue
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.round_report import fingerprints, read_round
from rc1_lib.preflight.ticket import AGAIN, write_ticket
from rc1_lib.preflight.ticket_key import envelope_of
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.git import code_named, read_code
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import sha256_json
from rc1_lib.workspace.file_hashes import forget_hashes, sha256_file

_VERSION = 1


def issue_ticket(run: Run, judged: Mapping[int, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Issue the ticket after two passed rounds.

    Args:
        run: workspace and configuration.
        judged: round -> its report, of the rounds that this process judged. Those of an earlier process are read from
            the workspace, as `rc1 round2` does after `rc1 round1`.

    Raises:
        TicketError: when a round is missing or failed, or when anything changed between the rounds or since.
        RC1Error: when the base is on the hub without a commit, or when the configured key cannot sign.
    """
    check_can_issue(run)
    forget_hashes()
    evidence = Evidence(run)
    files = fingerprints(evidence)
    rounds = [(judged or {}).get(number) or read_round(run, number) or {} for number in PASSED]
    for number, report in zip(PASSED, rounds, strict=True):
        if faults := list(_faults(run, report, number, files)):
            raise TicketError(f"no ticket: {'; '.join(faults)}; {AGAIN}")
    issued = datetime.now(UTC)
    body: dict[str, Any] = {
        "version": _VERSION,
        "profile": run.config.profile,
        "issued": issued.isoformat(timespec="seconds"),
        "expires": (issued + timedelta(hours=run.config.ticket.ttl_hours)).isoformat(timespec="seconds"),
        **code_named(read_code()),
        "code_sha256": code_sha256(),
        "config_sha256": run.config_sha256,
        "overrides": list(run.overrides),
        "foreign_gates": foreign_facts(),
        "judge": judge_identity(run),
        "files": files,
        "reports": {
            name: {"path": path, "sha256": sha256_file(run.workspace.path(path))} for name, path in _reports(run)
        },
        "config": run.config.model_dump(mode="json"),
        "waived": {name: why for report in rounds for name, why in report["waived"].items()},
        "not_applicable": {name: why for report in rounds for name, why in report["not_applicable"].items()},
        "thresholds_changed": departures(run.config, published_config()),
    }
    ticket = {**body, "ticket_sha256": sha256_json(body), "envelope": envelope_of(run, body), "revoked": None}
    write_ticket(run, ticket)
    return ticket


def _faults(
    run: Run, report: Mapping[str, Any], number: int, files: Mapping[str, Mapping[str, str | None]]
) -> Iterator[str]:
    """Say why a round earns no ticket now: it did not pass, or it was about other code, settings or files."""
    if report.get("pass") is not True:
        yield f"round {number} has not passed according to its report"
    elif (report.get("code_sha256"), report.get("config_sha256")) != (code_sha256(), run.config_sha256):
        yield f"round {number} was run with other code or another configuration"
    elif report.get("foreign_gates") != foreign_facts():
        yield f"round {number} was run with other gates of other packages"
    else:
        for name, one in files.items():
            if one["sha256"] is None or report["files"].get(name) != one:
                yield f"{one['path']} is not the file that round {number} read"


def _reports(run: Run) -> Iterator[tuple[str, str]]:
    """Yield name and path of the reports that a ticket pins: of both rounds, and those that their gates read."""
    for number, path in PASSED.items():
        yield f"round{number}", path
    if WEIGHTS.applies(run) and named_report(run, content := read_content(run))[0] is not None:
        yield "calibration", content["report"]["path"]
    for one in (HACKING, ABLATION):  # a waived gate may leave no report
        if one.path(run).is_file():
            yield one.name, one.where(run)
