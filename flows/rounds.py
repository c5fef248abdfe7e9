"""One round: evaluate all its gates independently of each other, and hash their files before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prefect.futures import wait
from prefect.logging import get_run_logger

from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import BY_NAME, gates_of_round, round_title
from rc1_lib.preflight.round_report import fingerprints, round_passed, tally
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.file_hashes import forget_hashes
from tasks.gates import faulted, gate, read_verdict

Verdict = tuple[GateResult | None, str]
"""The outcome of a gate's task: its result, or None and the error that prevented one."""


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """The verdicts of a round.

    Attributes:
        number: the round; `NIGHTLY` for the gates of no round.
        results: one verdict per gate, in the round's order.
        faults: gates that could not be evaluated because of an error in program or machine -> the error.
    """

    number: int
    results: list[GateResult]
    faults: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether every gate passed."""
        return round_passed(self.results, self.number)


def judge_round(
    run: Run,
    number: int,
    *,
    before: Sequence[GateResult] = (),
    waiting: Mapping[str, str] | None = None,
) -> JudgedRound:
    """Evaluate every gate of a round; evaluate again those whose evidence changed meanwhile or that met an error.

    Args:
        run: supplies files and configuration.
        number: 1, 2 or `NIGHTLY`.
        before: verdicts of the previous round; passes of gates that only read files are reused if these are the same.
        waiting: gate that is not evaluated -> what it waits for.
    """
    waits = waiting or {}
    names = [spec.name for spec in gates_of_round(number) if spec.name not in waits]
    verdicts = _evaluated(run, number, names, {result.name: result for result in before})
    now = _files_now(run)
    if doubtful := [name for name in names if not _holds(verdicts[name], now)]:
        get_run_logger().warning("evaluated once more: %s", ", ".join(doubtful))
        verdicts |= _evaluated(run, number, doubtful, {})
        now = _files_now(run)
    results, faults = [], {}
    for name in [spec.name for spec in gates_of_round(number)]:
        result, fault = verdicts.get(name, (None, ""))
        if name in waits:
            result = GateResult(name, waits_for=waits[name])
        elif result is None:
            faults[name] = fault
            result = faulted(name, fault)
        elif not _holds(verdicts[name], now):
            error = "its files changed while it was evaluated; run again when nothing writes to them"
            result = GateResult(name, error=error)
        results.append(result)
    report_progress(round_title(number), len(results), len(results), tally(results))
    return JudgedRound(number, results, faults)


def _evaluated(run: Run, number: int, names: Sequence[str], before: Mapping[str, GateResult]) -> dict[str, Verdict]:
    futures = {name: gate.submit(run, name, number, before.get(name)) for name in names}
    wait(list(futures.values()))
    # The verdict comes from the gate's data, not from the type of its state.
    return {name: read_verdict(future.state.result(raise_on_failure=False)) for name, future in futures.items()}


def _files_now(run: Run) -> dict[str, dict[str, str | None]]:
    """Return path and SHA-256 of every file of the preflight; each is read again."""
    forget_hashes()
    return fingerprints(Evidence(run))


def _holds(verdict: Verdict, now: Mapping[str, Mapping[str, str | None]]) -> bool:
    """Return whether there is a verdict, and the files that it is based on are unchanged."""
    result, _ = verdict
    if result is None or result.status not in (Status.PASSED, Status.FAILED):
        return result is not None
    # Files that only waived gates read are not among those of a round.
    read = [now[file] for file in BY_NAME[result.name].reads if file in now]
    return result.evidence == {one["path"]: one["sha256"] for one in read}
