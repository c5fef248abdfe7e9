"""The gates' verdicts, round by round, and whether the run passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rc1_lib.preflight.carried_ticket import why_outdated
from rc1_lib.preflight.round_report import FAILED, PASSED
from rc1_lib.records import PASSING, GateResult, Status
from rc1_lib.release.report.html import FAILURE, Cell, Section, Table, checks_table
from rc1_lib.release.report.sources import Citation, Source, Sources

_NIGHTLY = "reports/preflight/nightly.json"
_WORDS = {Status.FAILED: FAILURE, Status.ERROR: "not judged"}


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the run passed, according to its files.

    Attributes:
        reasons: why it failed; empty if it passed.
        waived: gate -> why it was waived.
        not_applicable: gate -> why it has nothing to judge.
        changed: settings that differ from the published ones: key, value, published value.
    """

    reasons: Sequence[str]
    waived: Mapping[str, str]
    not_applicable: Mapping[str, str]
    changed: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class RoundVerdicts:
    """The verdicts of one round, and the file that contains them."""

    source: Source
    gates: Sequence[GateResult]

    @classmethod
    def of(cls, source: Source, gates: Sequence[Mapping[str, Any]] | None) -> RoundVerdicts:
        """Return the verdicts in a report."""
        return cls(source, [GateResult.from_report(gate) for gate in gates or ()])

    @property
    def failed(self) -> str:
        """The names of the gates that did not pass."""
        return ", ".join(gate.name for gate in self.gates if gate.status not in PASSING)

    def gate(self, name: str) -> GateResult | None:
        """Return the verdict of one gate; None if it was not judged."""
        return next((gate for gate in self.gates if gate.name == name), None)


def gate_checks(
    sources: Sources, title: str, gate: str, start: tuple[str, ...] = ("",), info: bool = True
) -> list[Table]:
    """Return a table of a gate's checks in round 1 whose names begin with `start`; empty without a round 1."""
    one = rounds_of(sources).get("round 1")
    found = verdict.checks if one and (verdict := one.gate(gate)) else ()
    wanted = (check for check in found if check.name.startswith(start) and (info or check.op != "info"))
    checks = [(check.name, check) for check in wanted]
    return [checks_table(title, one.source, f"gates: {gate}", checks, True)] if one else []


def rounds_of(sources: Sources) -> dict[str, RoundVerdicts]:
    """Return both rounds (a failed report comes before a passed one) and those of the latest nightly."""
    place, found = sources.run.workspace, {}
    for number in (1, 2):
        failed = place.path(FAILED[number])
        read = sources.read(f"round{number}", failed if failed.is_file() else PASSED[number])
        if read is not None:
            found[f"round {number}"] = RoundVerdicts.of(read, read.at("gates"))
    nightly = sources.read("nightly", _NIGHTLY)
    if nightly is not None:
        rounds = nightly.at("rounds") or {}
        found |= {f"nightly, {name}": RoundVerdicts.of(nightly, gates) for name, gates in rounds.items()}
    return found


def standing(sources: Sources) -> Standing:
    """Return why the run failed, if it did: something failed or is missing, or the policy had another ticket."""
    rounds, ticket, evaluation = rounds_of(sources), sources.ticket(), sources.evaluation()
    reasons = [
        f"{name} has not passed: {one.failed or 'it was not judged whole'}"
        for name, one in rounds.items()
        if one.failed or one.source.at("pass") is not True
    ]
    reasons += [f"round {number} was not judged" for number in (1, 2) if f"round {number}" not in rounds]
    if ticket is None:
        reasons.append("there is no ticket")
    elif ticket.at("revoked") is not None:
        reasons.append(f"the ticket was revoked: {ticket.at('revoked', 'reason')}")
    training = sources.training()
    if training is not None and ticket is not None and (outdated := why_outdated(training.body, ticket.body)):
        reasons.append(outdated)
    if evaluation is None:
        reasons.append("the policy was not evaluated")
    elif evaluation.at("pass") is not True:
        gate = GateResult.from_report(evaluation.at("gate"))
        failed = ", ".join(check.name for check in gate.failures)
        reasons.append(f"the gate {gate.name} failed: {failed or gate.error}")
    first = rounds.get("round 1")
    waived, left_out = (
        {name: why for one in rounds.values() for name, why in (one.source.at(key) or {}).items()}
        for key in ("waived", "not_applicable")
    )
    found = evaluation or (first.source if first else None)
    changed = found.at("thresholds_changed") if found else []
    rows = [(one["key"], str(one["value"]), str(one["published"])) for one in changed or []]
    return Standing(reasons, waived, left_out, rows)


def gates(sources: Sources) -> Section:
    """Return a table of every gate in every round, and collapsed tables of all checks."""
    rounds = rounds_of(sources)
    if not rounds:
        return Section("gates", "The gates", "No round was judged in this workspace.")
    names = list(dict.fromkeys(gate.name for one in rounds.values() for gate in one.gates))
    history: list[Sequence[Cell]] = [(name, *(_status(one, name) for one in rounds.values())) for name in names]
    tables = [Table("History", ("gate", *rounds), history, True)]
    for name, one in rounds.items():
        checks = [
            (f"{gate.name}: {check.name}", check) for gate in one.gates for check in gate.checks if check.op != "info"
        ]
        tables.append(checks_table(f"All checks of {name}", one.source, "gates", checks))
    times = "; ".join(f"{name} at {one.source.at('time')}" for name, one in rounds.items())
    return Section("gates", "The gates", f"{times}.", (), tables)


def _status(found: RoundVerdicts, name: str) -> Cell:
    if (gate := found.gate(name)) is None:
        return "–"
    return Citation(_WORDS.get(gate.status, gate.status.value), found.source, f"gates: {name}")
