"""One round: evaluates all its gates independently of each other, and hashes their files before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefect import State
from prefect.futures import wait
from prefect.logging import get_run_logger

from flows.shards import Shards, may_be_given_away
from rc1_lib.preflight.gates import gates_of_round, round_title
from rc1_lib.preflight.rounds import GREEN, round_passed
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from tasks.gates import AllFiles, faulted, files_now, files_read, gate, read_verdict


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
    shards: Shards | None = None,
) -> JudgedRound:
    """Evaluate every gate of a round, and again those whose evidence changed meanwhile or that met an error.

    Args:
        run: supplies files and configuration.
        number: 1, 2 or `NIGHTLY`.
        before: verdicts of the round before. Those found green by files alone are taken over where these are the same.
        waiting: gates that are not evaluated, with what each waits for.
        shards: evaluates the gates that only read files in other processes; None: this process evaluates all. Second
            evaluations always run in this process.
    """
    unreached = {name: GateResult(name, waits_for=why) for name, why in (waiting or {}).items()}
    names = [spec.name for spec in gates_of_round(number) if spec.name not in unreached]
    verdicts = _judge(run, number, names, {result.name: result for result in before}, shards)
    now = files_now(run)
    doubtful = [name for name in names if not _holds(verdicts[name], now)]
    if doubtful:
        get_run_logger().warning("evaluated once more: %s", ", ".join(doubtful))
        verdicts |= _judge(run, number, doubtful, {})
        now = files_now(run)
    results, faults = [], {}
    for name in [spec.name for spec in gates_of_round(number)]:
        if name in unreached:
            results.append(unreached[name])
            continue
        verdict = verdicts[name]
        if verdict.result is None:
            faults[name] = verdict.fault
            results.append(faulted(name, verdict.fault))
        elif _holds(verdict, now):
            results.append(verdict.result)
        else:
            results.append(
                GateResult(
                    name, error="its files changed while it was evaluated; run again when nothing writes to them"
                )
            )
    green = sum(result.status in GREEN for result in results)
    report_progress(round_title(number), len(results), len(results), f"{green} of {len(results)} gates passed")
    return JudgedRound(number, results, faults)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The outcome of one task run: a result, or the error that prevented it."""

    name: str
    result: GateResult | None
    fault: str = ""


def _judge(
    run: Run, number: int, names: Sequence[str], before: Mapping[str, GateResult], shards: Shards | None = None
) -> dict[str, _Verdict]:
    given = [name for name in names if shards is not None and may_be_given_away(name)]
    elsewhere = shards(given, run, number, before) if shards is not None else dict
    futures = {name: gate.submit(run, name, number, before.get(name)) for name in names if name not in given}
    wait(list(futures.values()))
    verdicts = {name: _verdict(name, future.state) for name, future in futures.items()}
    return verdicts | {name: _Verdict(name, *read_verdict(body)) for name, body in elsewhere().items()}


def _verdict(name: str, state: State[Any]) -> _Verdict:
    """Read a verdict from the gate's data, never from the type of its state."""
    return _Verdict(name, *read_verdict(state.result(raise_on_failure=False)))


def _holds(verdict: _Verdict, now: AllFiles) -> bool:
    """Whether there is a verdict and its files are unchanged."""
    if verdict.result is None:
        return False
    rests_on_files = verdict.result.status in (Status.PASSED, Status.FAILED)
    return not rests_on_files or verdict.result.evidence == files_read(verdict.name, now)
