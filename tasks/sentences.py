"""Verdicts in words: one sentence for a check, a gate and a round."""

from __future__ import annotations

from collections.abc import Sequence

from rc1_lib.preflight.round_report import GREEN
from rc1_lib.records import Check, GateResult, Status


def amount(value: object) -> str:
    """A value for people: four significant digits, without quotes; NaN is undefined."""
    if isinstance(value, float):
        return f"{value:.4g}" if value == value else "undefined"
    if isinstance(value, list | tuple):
        return " to ".join(amount(part) for part in value)
    return str(value)


def check_sentence(check: Check) -> str:
    """`distinct-2 0.41, wanted >= 0.6`, followed by whether the value's interval covers the threshold."""
    relation = "" if check.op == "==" else f"{check.op} "
    certainty = ", undecided" if check.undecided else ""
    return f"{check.name} {amount(check.value)}, wanted {relation}{amount(check.threshold)}{certainty}"


def gate_sentence(result: GateResult, advice: bool = True) -> str:
    """A gate's findings in one line: the failed checks, optionally with advice, or why there is no verdict."""
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
    """`5 of 5 stages passed`, or which stage was the last one evaluated, and why."""
    judged = [result for result in results if result.status is not Status.WAITING]
    red = [result for result in judged if result.status not in (Status.PASSED, Status.NOT_APPLICABLE)]
    if not red:
        passed = sum(result.status is Status.PASSED for result in judged)
        return f"{passed} of {stages} stages passed" + _not_applicable(judged)
    sentence = f"stage {len(judged)} of {stages} failed: {red[-1].name} ({gate_sentence(red[-1], advice=False)})"
    return sentence + _waiting(results)


def round_sentence(results: Sequence[GateResult]) -> str:
    """`2 of 15 gates failed: diversity (distinct-2 0.41, wanted >= 0.6), ...`, or how many passed and were waived.

    A cause that several gates share, as a row that none can read, stands there once: `mix, length (...)`.
    """
    red = [result for result in results if result.status not in (*GREEN, Status.WAITING)]
    if red:
        names = dict[str, list[str]]()
        for result in red:
            names.setdefault(gate_sentence(result, advice=False), []).append(result.name)
        causes = ", ".join(f"{', '.join(gates)} ({cause})" for cause, gates in names.items())
        return f"{len(red)} of {len(results)} gates failed: {causes}" + _waiting(results)
    waived = [result.name for result in results if result.status is Status.WAIVED]
    passed = f"{sum(result.status is Status.PASSED for result in results)} of {len(results)} gates passed"
    passed += f", {len(waived)} waived: {', '.join(waived)}" if waived else ""
    return passed + _not_applicable(results) + _waiting(results)


def _not_applicable(results: Sequence[GateResult]) -> str:
    """The gates that do not apply; empty if all do."""
    names = [result.name for result in results if result.status is Status.NOT_APPLICABLE]
    return f", {len(names)} not applicable: {', '.join(names)}" if names else ""


def _waiting(results: Sequence[GateResult]) -> str:
    """The gates that were not evaluated; empty if all were."""
    names = [result.name for result in results if result.status is Status.WAITING]
    return f"; not judged: {', '.join(names)}" if names else ""
