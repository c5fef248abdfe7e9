"""The last lines of a command: few, within the width of a page, and with advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rc1_lib.cli.endings import MOST, Ending, Failure, failure_of, judged
from rc1_lib.cli.session import WIDTH
from rc1_lib.records import Check, GateResult

REPORT = Path("/w/reports/preflight/round1.json")
NEXT = "next: rc1 train"
FINE = Check("tight", 0.61, ">=", 0.60, True)
BROKEN = Check("shortest", 12, ">=", 64, False, "lengthen the rows, or leave them out")


def gate(name: str, *checks: Check, **more: Any) -> dict[str, Any]:
    return GateResult(name, checks, **more).to_dict()


def test_pass_shows_verdict_and_report() -> None:
    gates = [gate("length", FINE), gate("git", waiver="why"), gate("judge", not_applicable="why")]
    assert judged("round 1", gates, REPORT, after_fail="no").lines() == [
        "pass: round 1, 3 gates: 1 passed, 1 waived, 1 not applicable", f"report: {REPORT}",
    ]  # fmt: skip
    assert judged("length", gates[:1], None).lines() == ["pass: length"]


def test_failure_shows_the_first_failing_check_and_its_advice() -> None:
    gates = [gate("git", FINE), gate("length", FINE, BROKEN, BROKEN), gate("mix", error="no such file")]
    assert judged("round 1", gates, REPORT, after_fail=NEXT).lines() == [
        "fail: round 1, 2 of 3 gates: length, mix", "  length: shortest is 12, wanted >= 64; 1 more above",
        "what to do: lengthen the rows, or leave them out", f"report: {REPORT}", NEXT,
    ]  # fmt: skip
    only = judged("round 1", gates[2:] + gates[1:2], REPORT).lines()
    assert only[1:] == ["  mix: no such file", "  length: shortest is 12, wanted >= 64", f"report: {REPORT}"], (
        "advice belongs to the first failure only"
    )
    assert failure_of(gates[2]) == Failure("mix: no such file")


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("length", [3, 100, 500])
@pytest.mark.parametrize("spaced", [True, False], ids=["words", "one long word"])
def test_ending_fits_for_any_number_and_length_of_failures(count: int, length: int, spaced: bool) -> None:
    words = ("word " * length)[:length] if spaced else "字" * length
    for report, following in ((REPORT, NEXT), (None, NEXT), (None, "")):
        for advice in (words, ""):
            failures = [Failure(f"{number}: {words}", advice) for number in range(count)]
            lines = Ending("fail", words, failures, report, following).lines()
            assert len(lines) <= MOST
            assert all(len(line) <= WIDTH or line == f"what to do: {advice.strip()}" for line in lines)
            shown = [line for line in lines if line.startswith("  ")]
            assert 1 <= len(shown) <= 3
            assert (count > len(shown)) == shown[-1].endswith(f"; {count - len(shown)} more above")
