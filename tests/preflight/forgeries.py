"""Forgeries of a ticket and its files by someone with write access to the workspace, and the expected error.

Each is applied to a workspace with a valid ticket. `recomputed` ones also have recomputed digests, as far as the kind
says. An error of None means that it is not detected; `docs/ticket.md` says why.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rc1_lib.evidence import described
from rc1_lib.preflight.round_report import PASSED, write_round
from rc1_lib.preflight.ticket import TICKET, revoke_ticket, stated
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json, sha256_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

Body = dict[str, Any]
Change = Callable[[Body], object]


@dataclass(frozen=True)
class Forgery:
    """One kind of forgery.

    Attributes:
        kind: what is done, as the page names it.
        forge: applies it to the workspace of a run.
        error: a part of the error; None if it is not detected without a key.
        signed: a part of the error with signed tickets, if it is not detected otherwise.
        long: whether only `make test-long` runs it.
    """

    kind: str
    forge: Callable[[Run], object]
    error: str | None
    signed: str = ""
    long: bool = True


def rewritten(path: Path, change: Change) -> None:
    """Change a JSON file."""
    body = read_json(path)
    change(body)
    write_json(path, body)


def ticket(change: Change, *, digest: bool = True) -> Callable[[Run], None]:
    """Change the ticket, and recompute its digest or keep it."""

    def forge(run: Run) -> None:
        def both(body: Body) -> None:
            change(body)
            if digest:
                body["ticket_sha256"] = sha256_json(stated(body))

        rewritten(run.workspace.path(TICKET), both)

    return forge


def reports(change: Change, *numbers: int) -> Callable[[Run], None]:
    """Change rounds' reports, and update their hashes in the ticket."""

    def forge(run: Run) -> None:
        for number in numbers or PASSED:
            rewritten(run.workspace.path(PASSED[number]), change)
        ticket(lambda body: _name_reports(run, body))(run)

    return forge


def _name_reports(run: Run, body: Body) -> None:
    for number, path in PASSED.items():
        body["reports"][f"round{number}"]["sha256"] = sha256_file(run.workspace.path(path))


def gate(name: str, change: Change) -> Change:
    """A change of one gate's verdict in a report."""
    return lambda report: change(next(one for one in report["gates"] if one["name"] == name))


def without(gate_name: str) -> Change:
    """A report that lacks a gate."""
    return lambda report: report.update(gates=[one for one in report["gates"] if one["name"] != gate_name])


def waived(report: Body) -> None:
    """A waiver that no configuration gives."""
    gate("leakage", lambda one: one.update(waiver="never mind", checks=[], status="waived"))(report)
    report["waived"]["leakage"] = "never mind"


def not_applicable(report: Body) -> None:
    """Mark an applicable gate as not applicable."""
    gate("leakage", lambda one: one.update(not_applicable="none of it", checks=[], status="not applicable"))(report)
    report["not_applicable"]["leakage"] = "none of it"


def at(kind: str, act: Callable[[Path], object]) -> Callable[[Run], None]:
    """Alter a registered file or folder, after copying it into the workspace if the project has it."""

    def forge(run: Run) -> None:
        path = described(kind).path(run)
        own = run.workspace.path(run.workspace.name(path))
        if not own.exists():
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, own) if path.is_dir() else shutil.copyfile(path, own)
        act(own)

    return forge


def edited(path: Path) -> None:
    """Add a byte to a file, or to one in a folder."""
    path = path if path.is_file() else max(path.rglob("*.json"))
    path.write_bytes(path.read_bytes() + b"\n")


def linked_to_another(path: Path) -> None:
    """A link to a changed copy."""
    copy = path.with_name(f"{path.name}.copy")
    path.rename(copy)
    edited(copy)
    path.symlink_to(copy.name)


def linked_folder_inside(path: Path) -> None:
    """A link to a folder inside a folder."""
    (path.parent / "elsewhere").mkdir()
    (path / "more").symlink_to(path.parent / "elsewhere")


def damaged_pool(run: Run) -> Callable[[Body], None]:
    """Change the pool; return a change that puts its new hash into a report or a ticket."""
    path = described("pool").path(run)
    edited(path)
    return lambda body: body["files"]["pool"].update(sha256=sha256_file(path))


def pool_with_its_manifest(run: Run) -> None:
    """Change the pool together with its manifest."""
    path = described("pool").path(run)
    edited(path)
    manifest = run.workspace.manifest_path(run.config.pool.path)
    rewritten(manifest, lambda body: body.update(sha256=sha256_file(path)))
    run.workspace.checksum_path(run.config.pool.path).write_text(f"{sha256_file(path)}  {run.config.pool.path}\n")


def pool_in_the_ticket(run: Run) -> None:
    """Change the pool and its hash in the ticket."""
    ticket(damaged_pool(run))(run)


def pool_in_ticket_and_reports(run: Run) -> None:
    """Change the pool and every record of its hash: no gate was run on it."""
    renamed = damaged_pool(run)
    reports(renamed)(run)
    ticket(renamed)(run)


def forged_weights(run: Run) -> Callable[[Body], None]:
    """Change the weights with their report and record; return a change that updates their hash elsewhere."""
    path = described("weights").path(run)
    named = read_json(path)["report"]["path"]
    others = dict.fromkeys(read_json(path)["weights"], 0.0) | {"answered": 1.0}
    rewritten(run.workspace.path(named), lambda body: body.update(weights=others))
    report = {"path": named, "sha256": sha256_file(run.workspace.path(named))}
    rewritten(path, lambda body: body.update(weights=others, report=report))
    where = run.config.weights
    rewritten(run.workspace.manifest_path(where), lambda body: body.update(sha256=sha256_file(path)))
    run.workspace.checksum_path(where).write_text(f"{sha256_file(path)}  {where}\n")
    return lambda body: body["files"]["weights"].update(sha256=sha256_file(path))


def weights_in_the_ticket(run: Run) -> None:
    """Change the weights with their report and record, and their hash in the ticket."""
    ticket(forged_weights(run))(run)


def weights_in_ticket_and_reports(run: Run) -> None:
    """Change the weights with their report and record, and every record of their hash."""
    renamed = forged_weights(run)
    reports(renamed)(run)
    ticket(renamed)(run)


def shifted(hours: float) -> Change:
    """Issued at another time."""

    def change(body: Body) -> None:
        issued = datetime.now(UTC) + timedelta(hours=hours)
        lasts = datetime.fromisoformat(body["expires"]) - datetime.fromisoformat(body["issued"])
        body.update(issued=issued.isoformat(timespec="seconds"), expires=(issued + lasts).isoformat(timespec="seconds"))

    return change


def renewed(run: Run) -> None:
    """An expired ticket that is given another day."""
    ticket(shifted(-30))(run)
    ticket(shifted(0.01))(run)  # not the second of its issue: that would be the same ticket


def unrevoked(digest: bool) -> Callable[[Run], None]:
    """Remove a revocation from the ticket."""

    def forge(run: Run) -> None:
        revoke_ticket(run, "for a reason")
        ticket(lambda body: body.update(revoked=None), digest=digest)(run)

    return forge


def restored(after: Callable[[Run], object], *places: str) -> Callable[[Run], None]:
    """Restore earlier copies of files."""

    def forge(run: Run) -> None:
        before = {place: run.workspace.path(place).read_bytes() for place in places}
        after(run)
        for place, body in before.items():
            run.workspace.path(place).write_bytes(body)

    return forge


def failed_round(run: Run) -> None:
    """A failed second round that does not revoke the ticket."""
    body = read_json(run.workspace.path(PASSED[2]))
    results = [GateResult.from_dict({**gate, "offenders": ()}) for gate in body["gates"]]
    write_round(run, 2, [replace(one, error="broken") if one.name == "mix" else one for one in results])


def replaced_by(place: str, make: Callable[[Path], object]) -> Callable[[Run], None]:
    """A pipe or a folder in a file's place."""

    def forge(run: Run) -> None:
        path = run.workspace.path(place)
        path.unlink()
        make(path)

    return forge


def copied_over(source: str, target: str) -> Callable[[Run], None]:
    """One file in another's place."""

    def forge(run: Run) -> None:
        shutil.copyfile(run.workspace.path(source), run.workspace.path(target))
        ticket(lambda body: _name_reports(run, body))(run)

    return forge


_CHECK = {"name": "ok", "value": 1, "op": ">=", "threshold": 0, "passed": True, "advice": "", "interval": None}
_FAR = "2999-01-01T00:00:00+00:00"
_SIGNATURE = "its signature is not valid for RC1_TICKET_KEY"
_EDITED = "it was edited after it was issued (its digest does not match)"

OF_THE_TICKET = (
    Forgery("a field edited", ticket(lambda body: body.update(commit="another"), digest=False), _EDITED, long=False),
    Forgery("its expiry changed", ticket(lambda body: body.update(expires=_FAR), digest=False), _EDITED),
    Forgery("its expiry changed, recomputed", ticket(lambda body: body.update(expires=_FAR)),
            "it claims to be valid for longer than ticket.ttl_hours", long=False),
    Forgery("expired", ticket(shifted(-30)), "it expired at"),
    Forgery("issued tomorrow, recomputed", ticket(shifted(24)), "it was issued in the future"),
    Forgery("expired and renewed, recomputed", renewed, None, _SIGNATURE, long=False),
    Forgery("its revocation removed", unrevoked(False), _EDITED, long=False),
    Forgery("its revocation removed, recomputed", unrevoked(True), "it was revoked at", long=False),
    Forgery("a copy from before its revocation, restored", restored(lambda run: revoke_ticket(run, "x"), TICKET),
            "it was revoked at", long=False),
    Forgery("it and the reports from before a failed round, restored",
            restored(failed_round, TICKET, *PASSED.values()), "round 2 has failed since", long=False),
    Forgery("its profile changed to prod, recomputed", ticket(lambda body: body.update(profile="prod")),
            "it was issued for profile 'prod', not for 'local'"),
    Forgery("other code named, recomputed", ticket(lambda body: body.update(code_sha256="0" * 64)),
            "the code has changed since"),
    Forgery("another configuration named, recomputed", ticket(lambda body: body.update(config_sha256="0" * 64)),
            "the effective configuration differs"),
    Forgery("another configuration shown, recomputed", ticket(lambda body: body["config"].update(lr=0.5)),
            "it differs from its rounds' reports ('config')"),
    Forgery("another judge named, recomputed", ticket(lambda body: body["judge"].update(model="another")),
            "the judge differs"),
    Forgery("a loosened threshold left out, recomputed", ticket(lambda body: body["thresholds_changed"].pop()),
            "it differs from its rounds' reports ('thresholds_changed')", long=False),
    Forgery("a waiver left out, recomputed", ticket(lambda body: body["waived"].popitem()),
            "it differs from its rounds' reports ('waived')"),
    Forgery("a file left out, recomputed", ticket(lambda body: body["files"].pop("pool")),
            "it does not pin pool"),
    Forgery("an unknown file, recomputed",
            ticket(lambda body: body["files"].update(gold={"path": "gold.jsonl", "sha256": "0" * 64})),
            "it pins gold (gold.jsonl), which this version of RC1 does not read"),
    Forgery("a file without a hash, recomputed", ticket(lambda body: body["files"]["pool"].update(sha256=None)),
            "it does not pin pool"),
    Forgery("of another version", ticket(lambda body: body.update(version=2)), "is not a ticket: version"),
    Forgery("without reports, recomputed", ticket(lambda body: body["reports"].clear()), "the report of round1"),
    Forgery("removed", lambda run: run.workspace.path(TICKET).unlink(), "there is no ticket"),
    Forgery("replaced by a pipe", replaced_by(TICKET, os.mkfifo), "is a pipe"),
    Forgery("replaced by a folder", replaced_by(TICKET, Path.mkdir), "cannot be read (Is a directory)"),
)  # fmt: skip
OF_THE_REPORTS = (
    Forgery("a byte edited", lambda run: edited(run.workspace.path(PASSED[1])), "the report of round1", long=False),
    Forgery("removed", lambda run: run.workspace.path(PASSED[2]).unlink(), "the report of round2"),
    Forgery("a failing value under `passed`, recomputed",
            reports(gate("length", lambda one: [check.update(value=10**6) for check in one["checks"]])),
            "round 1 has not passed according to its report", long=False),
    Forgery("a gate left out, recomputed", reports(without("leakage"), 2),
            "round 2 has not passed according to its report"),
    Forgery("a gate waived, recomputed", reports(waived),
            "round 1 waives gates that the configuration does not waive", long=False),
    Forgery("a gate marked not applicable, recomputed", reports(not_applicable),
            "round 1 does not list the gates that are not applicable", long=False),
    Forgery("a loosened threshold left out, recomputed", reports(lambda body: body["thresholds_changed"].pop(), 1),
            "round 1 does not list the settings that differ from the published ones"),
    Forgery("of other code, recomputed", reports(lambda body: body.update(code_sha256="0" * 64), 1),
            "round 1 was run with other code"),
    Forgery("of another configuration, recomputed", reports(lambda body: body.update(config_sha256="0" * 64), 2),
            "round 2 was run with another configuration"),
    Forgery("of another profile, recomputed", reports(lambda body: body.update(profile="prod"), 1),
            "round 1 has profile 'prod', not 'local'"),
    Forgery("round 1's as round 2's, recomputed", copied_over(PASSED[1], PASSED[2]),
            "round 2 has not passed according to its report"),
    Forgery("round 2's as round 1's, recomputed", copied_over(PASSED[2], PASSED[1]),
            "the report of round 1 belongs to round2"),
    Forgery("a gate with made-up checks, recomputed",
            reports(gate("leakage", lambda one: one.update(checks=[_CHECK]))), None, _SIGNATURE, long=False),
)  # fmt: skip
_FILES = (
    "shadow", "takes", "pool", "metrics", "balanced", "weights", "judge_baseline", "judge_spec", "templates",
    "reference_templates", "base",
)  # fmt: skip
OF_THE_FILES = (
    *(Forgery(f"{kind} edited", at(kind, edited), "has changed", long=kind != "pool") for kind in _FILES),
    *(Forgery(f"{kind} linked to a changed copy", at(kind, linked_to_another), "has changed") for kind in _FILES[:6]),
    Forgery("base with a linked folder inside", at("base", linked_folder_inside), "is a link to a folder", long=False),
    Forgery("base with one more file", at("base", lambda path: (path / "more.json").touch()), "has changed"),
    Forgery("templates with one more file", at("templates", lambda path: (path / "x.json").touch()), "has changed"),
    Forgery("the pool and its manifest", pool_with_its_manifest, "has changed"),
    Forgery(
        "the pool, and its hash in the ticket",
        pool_in_the_ticket,
        "is not the file that round 1 read",
        long=False,
    ),
    Forgery(
        "the pool, and its hash everywhere",
        pool_in_ticket_and_reports,
        "the gate integrity no longer passes",
        long=False,
    ),
    Forgery("the weights, their report and their record", forged_weights, "has changed"),
    Forgery(
        "the weights with these, and their hash in the ticket",
        weights_in_the_ticket,
        "is not the file that round 1 read",
    ),
    Forgery(
        "the weights with these, and their hash everywhere",
        weights_in_ticket_and_reports,
        "the gate weights no longer passes",
    ),
)
EVERY = {"ticket": OF_THE_TICKET, "reports": OF_THE_REPORTS, "files": OF_THE_FILES}
