"""A small model on a slow server as a judge: each problem that it caused is reported with its cause."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rc1_lib.gates.judge_probe import probe_on
from rc1_lib.gates.judge_stability import stability_gate
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.records import Status
from tests.judge.bench import NUMBERS, Bench, dialogues
from tests.judge.gateway import Gateway, completion, running_gateway
from tests.judge_server import Behaviour, FaultKind, running

pytestmark = pytest.mark.usefixtures("planted_key")

CONCURRENT = ("judge.samples=1", "judge.limits.attempts=1", "judge.limits.concurrency=[12,12]")
ONE_AT_A_TIME = ("judge.samples=1", "judge.limits.attempts=1", "judge.limits.concurrency=[1,1]")


def confused(number: int, body: str, headers: dict[str, str]) -> Any:
    """Return the dialogue's numbers instead of grades; every seventh reply is cut off at its token limit."""
    status, headers_sent, value = completion(
        json.dumps({"reason": "7 boxes", **dict.fromkeys(DIMENSIONS, 84)}), "smollm2"
    )
    if number % 7 == 6:
        choice = {
            "message": {"role": "assistant", "content": '{"reason": "The 5th box of the '},
            "finish_reason": "length",
        }
        value = value | {"choices": [choice]}
    return status, headers_sent, value


def one_at_a_time(number: int, body: str, headers: dict[str, str]) -> Any:
    """The gateway holds its lock meanwhile, so all other requests wait."""
    time.sleep(0.5)
    return completion()


def test_numbers_outside_the_scale_give_missing_scores_and_the_probe_reports_them(
    bench: Bench, gateway: Gateway
) -> None:
    gateway.replies = confused
    judged = bench.score_at(gateway.url, dialogues(4))
    assert judged.coverage == 0.0
    assert judged.rows.select(NUMBERS).null_count().row(0) == (4,) * len(NUMBERS)
    assert set(bench.outcomes()) == {"bad_reply", "truncated"}
    verdict = probe_on(bench.run(gateway.url, "judge.model=smollm2", "gates.probe.n=4"), dialogues(4))
    assert verdict.status is Status.FAILED
    found = {check.name: check for check in verdict.checks}
    assert (
        "the reply has answered = 84, expected a number from 0 to 1"
        in found["dialogues with every sample scored"].advice
    )
    assert found["dialogues with every sample scored"].value == 0
    assert found["cost, USD"].value == "unknown: set judge.prices"


def test_without_scores_the_stability_advice_points_to_the_coverage(bench: Bench, gateway: Gateway) -> None:
    gateway.replies = confused
    bench.score_at(gateway.url, dialogues(4))
    gates = bench.run(gateway.url).config.gates
    verdict = stability_gate(bench.log(), samples=3, thresholds=gates.stability, shared=gates.shared)
    failed = {check.name: check.advice for check in verdict.checks if check.passed is False}
    assert set(failed) == {"coverage", "largest pooled variance", "unstable dialogues, share"}
    assert "bad_reply" in failed["coverage"]
    assert (
        failed["unstable dialogues, share"] == "no dialogue has two scores, so the noise is unknown: see the coverage"
    )


def test_calls_that_time_out_in_a_queue_have_one_reason_and_succeed_one_at_a_time(bench: Bench) -> None:
    patience = "judge.limits.timeout_s=3"
    with running_gateway() as gateway:
        gateway.replies = one_at_a_time
        judged = bench.score_at(gateway.url, dialogues(12), *CONCURRENT, patience)
    ((reason, count),) = judged.reasons
    assert count >= 5
    assert reason == "timeout: no whole reply within 3 s (judge.limits.timeout_s)"
    with running_gateway() as gateway:
        gateway.replies = one_at_a_time
        judged = bench.score_at(gateway.url, dialogues(7), *ONE_AT_A_TIME, patience, fresh=True)
    assert judged.coverage == 1.0, "seven take 3.5 s together"


@pytest.mark.parametrize(("kind", "advised"), [(FaultKind.HANG, True), (FaultKind.SERVER_ERROR, False)])
def test_a_run_without_replies_stops_and_names_the_concurrency_only_after_timeouts(
    kind: FaultKind, advised: bool, bench: Bench
) -> None:
    quick = ("judge.limits.attempts=2", "judge.limits.concurrency=[2,2]", "judge.limits.timeout_s=0.3")
    with running(Behaviour(delay="zero", faults={kind: 1.0})) as server:
        judged = bench.score(server, dialogues(4), *quick)
    assert judged.stopped.startswith("4 attempts in a row brought no reply")
    assert ("judge.limits.concurrency=[1,1]" in judged.stopped) is advised


def test_a_timeout_names_the_limit_that_ended_the_attempt(bench: Bench) -> None:
    # Without the deadline an attempt would outlast the test.
    patient = ("judge.limits.timeout_s=3000", "judge.limits.deadline_s=0.3", "judge.samples=1")
    with running(Behaviour(delay="zero", faults={FaultKind.HANG: 1.0})) as server:
        judged = bench.score(server, dialogues(1), *patient)
    assert judged.why_unscored == "1: timeout: no whole reply within 0.3 s (judge.limits.deadline_s)"
    assert bench.outcomes() == {"timeout": 1}
