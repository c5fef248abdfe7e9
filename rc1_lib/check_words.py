"""Checks, gates and rounds in words: for terminals, and as sentences for flows and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rc1_lib.records import PASSING, Check, GateResult, Status


def figure(value: Any) -> str:
    """Format a number, a truth value, a list or a mapping in few characters, for a terminal."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return (" to " if all(isinstance(item, int | float) for item in value) else ", ").join(map(figure, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {figure(item)}" for key, item in value.items())
    return "none" if value is None else str(value)


def wanted(check: Mapping[str, Any]) -> str:
    """Return what a check compares its value with: `>= 64`."""
    sign = "in" if check["op"] == "within" else check["op"]
    return f"{sign} {figure(check['threshold'])}"


def failed_lines(gate: Mapping[str, Any], listed: str) -> list[str]:
    """Return what failed in a gate, what to do, and where the rows at fault are listed; empty if it did not fail."""
    if gate["status"] not in ("failed", "error"):
        return []
    lines = [f"{gate['name']}: {gate['error']}"] if gate["error"] else []
    for check in gate["checks"]:
        if not check["passed"]:
            lines.append(f"{gate['name']}: {check['name']} is {figure(check['value'])}, wanted {wanted(check)}")
            lines += [f"    {words}"] if (words := Check.from_dict(check).undecided) else []
            lines += [f"    {check['advice']}"] if check["advice"] else []
    if gate["offenders"]:
        lines.append(f"    {gate['offenders']} rows at fault: {listed}")
    return lines


def amount(value: object) -> str:
    """Format a value for a sentence: four significant digits, without quotes; NaN is "undefined"."""
    if isinstance(value, float):
        return f"{value:.4g}" if value == value else "undefined"
    if isinstance(value, list | tuple):
        return " to ".join(amount(part) for part in value)
    return str(value)


def check_sentence(check: Check) -> str:
    """Return `distinct-2 0.41, wanted >= 0.6`, and `, undecided` if the value's interval covers the threshold."""
    relation = "" if check.op == "==" else f"{check.op} "
    certainty = ", undecided" if check.undecided else ""
    return f"{check.name} {amount(check.value)}, wanted {relation}{amount(check.threshold)}{certainty}"


def gate_sentence(result: GateResult, advice: bool = True) -> str:
    """Return a gate's result in one line: the failed checks, optionally with advice, or why there is no verdict."""
    if result.status is Status.ERROR:
        return result.error or "nothing was checked"
    if result.status is Status.WAIVED:
        return f"waived: {result.waiver}"
    if result.status is Status.NOT_APPLICABLE:
        return f"not applicable: {result.not_applicable}"
    if result.status is Status.WAITING:
        return f"not judged: waits for {result.waits_for}"
    if result.status is Status.PASSED:
        return f"{sum(check.op != 'info' for check in result.checks)} checks passed"
    return "; ".join(
        check_sentence(check) + (f" ({check.advice})" if advice and check.advice else "") for check in result.failures
    )


def stages_sentence(results: Sequence[GateResult], stages: int) -> str:
    """Return `5 of 5 stages passed`, or which stage failed, and why."""
    judged = [result for result in results if result.status is not Status.WAITING]
    failed = [result for result in judged if result.status not in (Status.PASSED, Status.NOT_APPLICABLE)]
    if not failed:
        passed = sum(result.status is Status.PASSED for result in judged)
        return f"{passed} of {stages} stages passed" + _not_applicable(judged)
    sentence = f"stage {len(judged)} of {stages} failed: {failed[-1].name} ({gate_sentence(failed[-1], advice=False)})"
    return sentence + _waiting(results)


def round_sentence(results: Sequence[GateResult]) -> str:
    """Return `2 of 15 gates failed: diversity (distinct-2 0.41, wanted >= 0.6), ...`, or how many passed.

    A cause that several gates share, such as an unreadable row, is written once: `mix, length (...)`.
    """
    failed = [result for result in results if result.status not in (*PASSING, Status.WAITING)]
    if failed:
        names = dict[str, list[str]]()
        for result in failed:
            names.setdefault(gate_sentence(result, advice=False), []).append(result.name)
        causes = ", ".join(f"{', '.join(gates)} ({cause})" for cause, gates in names.items())
        return f"{len(failed)} of {len(results)} gates failed: {causes}" + _waiting(results)
    waived = [result.name for result in results if result.status is Status.WAIVED]
    passed = f"{sum(result.status is Status.PASSED for result in results)} of {len(results)} gates passed"
    passed += f", {len(waived)} waived: {', '.join(waived)}" if waived else ""
    return passed + _not_applicable(results) + _waiting(results)


def _not_applicable(results: Sequence[GateResult]) -> str:
    """Return the gates that do not apply, for a sentence; "" if all apply."""
    names = [result.name for result in results if result.status is Status.NOT_APPLICABLE]
    return f", {len(names)} not applicable: {', '.join(names)}" if names else ""


def _waiting(results: Sequence[GateResult]) -> str:
    """Return the gates that were not evaluated, for a sentence; "" if all were."""
    names = [result.name for result in results if result.status is Status.WAITING]
    return f"; not judged: {', '.join(names)}" if names else ""
