"""Verdicts and distributions as tables that fit 100 columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from rc1_lib.check_words import check_line, failed_lines, figure, wanted
from rc1_lib.cli.streams import visible
from rc1_lib.numbers.uncertainty import margin
from rc1_lib.records import Check

if TYPE_CHECKING:
    from rc1_lib.evaluation.tables import Rows

_MANY = 1e7
_MARKS = {
    "passed": ("passed", "green"),
    "failed": ("FAILED", "bold red"),
    "waived": ("waived", "yellow"),
    "not applicable": ("not applicable", "yellow"),
    "error": ("ERROR", "bold red"),
    "not judged": ("not judged", "yellow"),
}


def table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[object] | None], numbers: Collection[str] = ()
) -> Table:
    """Return a table without a frame; the columns named in `numbers` are right-aligned.

    Cells are shown literally, without rich's markup. None in place of a row begins a new section.
    """
    made = Table(
        title=visible(title), title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for head in heads:
        made.add_column(head, justify="right" if head in numbers else "left", overflow="fold")
    for row in rows:
        if row is None:
            made.add_section()
        else:
            made.add_row(*(cell if isinstance(cell, Text) else Text(visible(str(cell))) for cell in row))
    return made


def of_rows(rows: Rows) -> Table:
    """Return an evaluation's table: text in the first column, numbers in the others."""
    return table(rows.title, rows.head, rows.rows, rows.head[1:])


def rounded(value: float) -> str:
    """Return a number with three digits, in thousands or in millions."""
    if value >= _MANY:
        return f"{value / 1e6:.3g} M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def gates_table(title: str, gates: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with each gate's status and deciding check: the first that failed, or else the closest one.

    Only this table has a frame, because it is the verdict.
    """
    rows = []
    for gate in errors_once(gates):
        counted = [check for check in map(Check.from_dict, gate["checks"]) if check.op != "info"]
        passed = sum(check.passed for check in counted)
        rows.append(
            (gate["name"], Text(*_MARKS[gate["status"]]), f"{passed}/{len(counted)}", *_decision(gate, counted))
        )
    shown = table(title, ("gate", "status", "checks", "deciding check", "value"), rows, ("checks",))
    shown.box, shown.pad_edge = box.HEAVY_HEAD, True
    for column in shown.columns[:3]:
        column.no_wrap = True
    return shown


def verdict(title: str, gate: Mapping[str, Any]) -> list[Table | str]:
    """Return one gate's table, what failed and what to do, and which checks are undecided."""
    return [gates_table(title, [gate]), *failed_lines(gate, ""), *undecided_lines([gate])]


def errors_once(gates: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the gates, with an error or reason that several share shown only at the first of them."""
    first: dict[str, str] = {}
    found: list[Mapping[str, Any]] = []
    for gate in gates:
        for key in ("error", "not_applicable"):
            words = gate[key]
            if words and (name := first.setdefault(words, gate["name"])) != gate["name"]:
                gate = {**gate, key: f"as {name}"}
        found.append(gate)
    return found


def undecided_lines(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the checks that passed although their interval covers the threshold: other rows might fail them."""
    return [
        f"{gate['name']}: {check_line(check)}; {words}"
        for gate in gates
        for check in map(Check.from_dict, gate["checks"])
        if check.passed and (words := check.undecided)
    ]


def notes(report: Mapping[str, Any], file: str) -> list[str]:
    """Return notes: waivers, and how many settings differ from the published ones.

    Args:
        report: a command's report.
        file: its path; it lists the settings under `thresholds_changed`.
    """
    lines = set_aside(report)
    if changed := len(report.get("thresholds_changed", ())):
        words = "setting differs from the published one" if changed == 1 else "settings differ from the published ones"
        lines.append(f"{changed} {words}: {file}")
    return lines


def set_aside(report: Mapping[str, Any]) -> list[str]:
    """Return the gates that a report or a ticket lists as waived or not applicable, grouped by reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for word in ("waived", "not_applicable"):
        for name, why in report.get(word, {}).items():
            reasons.setdefault((word.replace("_", " "), why), []).append(name)
    return [f"{word}: {', '.join(names)} ({why})" for (word, why), names in reasons.items()]


def counts(found: Mapping[Any, int]) -> str:
    """Return `a 3, b 5`."""
    return ", ".join(f"{name} {count}" for name, count in found.items())


def _decision(gate: Mapping[str, Any], counted: Sequence[Check]) -> tuple[str, str]:
    if gate["status"] == "waived":
        return gate["waiver"], ""
    if gate["status"] == "not applicable":
        return gate["not_applicable"], ""
    if gate["status"] == "not judged":
        return f"waits for {gate['waits_for']}", ""
    failed = [check for check in counted if not check.passed]
    if not failed and gate["error"]:
        return gate["error"], ""
    if not counted:
        return "", ""
    check = failed[0] if failed else min(counted, key=lambda one: margin(one.value, one.op, one.threshold))
    return check.name, f"{figure(check.value)} {wanted(check)}{', undecided' if check.undecided else ''}"
