"""Profiles, waivers and errors in the rounds."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.evidence import Evidence
from rc1_lib.preflight import gates
from rc1_lib.preflight.ahead import ahead, judging, of_the_pool_alone
from rc1_lib.preflight.gates import BY_NAME, evaluate, gates_of_round
from rc1_lib.preflight.rounds import round_passed
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.runtime.workers import worker_processes
from tests.conftest import SMALL


def test_prod_without_a_key_is_red_in_words_and_nothing_stands_in(fresh_copy: Callable[..., Run]) -> None:
    root = fresh_copy().workspace.root
    prod = open_run(profile="prod", workspace=root)
    gates = [evaluate(name, Evidence(prod), 1) for name in ("judge_probe", "anti_simulation", "judge_stability")]
    assert [gate.status for gate in gates] == [Status.ERROR] * 3
    assert "SCORER_API_KEY" in gates[0].error
    assert not round_passed(gates, 1)


def test_a_log_that_was_never_written_is_an_error_and_no_pass(fresh_copy: Callable[..., Run]) -> None:
    evidence = Evidence(fresh_copy("gates.waivers={}"))
    for name in ("anti_simulation", "judge_stability"):
        result = evaluate(name, evidence, 1)
        assert result.status is Status.ERROR
        assert "no usage log" in result.error


def test_the_rubric_passes_probe_and_stability_and_never_as_a_billed_judge(fresh_copy: Callable[..., Run]) -> None:
    evidence = Evidence(fresh_copy("gates.waivers={}"))
    assert evaluate("judge_probe", evidence, 1).failures == ()
    assert evaluate("judge_stability", evidence, 1).failures == ()
    assert "billed scorings" in {check.name for check in evaluate("anti_simulation", evidence, 1).failures}
    demanding = Evidence(fresh_copy_again(evidence.run, "gates.probe.require_billed=true"))
    assert "billed calls" in {check.name for check in evaluate("judge_probe", demanding, 1).failures}


def fresh_copy_again(run: Run, *overrides: str) -> Run:
    """The same workspace under further overrides."""
    return open_run(profile="local", workspace=run.workspace.root, overrides=(*SMALL, *overrides))


def test_local_shows_the_judges_gates_as_waived_with_their_reason(evidence: Evidence) -> None:
    result = evaluate("anti_simulation", evidence, 1)
    assert result.status is Status.WAIVED
    assert "bills nobody" in result.waiver


def test_a_waiver_for_a_gate_that_does_not_exist_is_refused(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy("gates.waivers={diversty: oops}")
    with pytest.raises(ConfigError, match="diversty"):
        evaluate("mix", Evidence(run), 1)


@pytest.mark.parametrize(
    "name", ["mix", "length", "diversity", "duplicates", "leakage", "consistency", "answer_rule", "difficulty"]
)
def test_a_missing_pool_is_an_error_and_no_pass(name: str, fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    for file in ("pool", "balanced"):
        Evidence(run).path(file).unlink()
    result = evaluate(name, Evidence(run), 1)
    assert result.status is Status.ERROR
    assert "there is no such file" in result.error


def test_a_damaged_line_of_the_pool_is_an_error_that_names_the_line(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    path = Evidence(run).path("pool")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[6] = lines[6][:100] + b"\n"
    path.write_bytes(b"".join(lines))
    assert "line 7: not valid JSON" in evaluate("mix", Evidence(run), 1).error


def test_round_two_repeats_round_one_and_adds_the_shadow_run() -> None:
    first, second = ({spec.name for spec in gates_of_round(number)} for number in (1, 2))
    assert second - first == {"shadow_run"}
    assert first < set(BY_NAME)


def test_an_altered_pool_turns_the_integrity_gate_red(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    path = Evidence(run).path("pool")
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    failed = {check.name: check.value for check in evaluate("integrity", Evidence(run), 1).failures}
    assert failed["data/rollouts/rc1_seed.jsonl"] == "altered"


def _counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Grows by one whenever the gate is computed."""
    computed: list[str] = []
    spec = BY_NAME[name]

    def look(evidence: Evidence, number: int) -> GateResult:
        computed.append(name)
        return spec.evaluate(evidence, number)

    monkeypatch.setitem(BY_NAME, name, replace(spec, evaluate=look))
    return computed


def test_the_second_round_computes_nothing_anew_over_the_same_bytes(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, evidence = _counted(monkeypatch, "length"), Evidence(fresh_copy())
    assert evaluate("length", evidence, 1) == evaluate("length", evidence, 2)
    assert len(computed) == 1
    assert evaluate("length", evidence, 2, anew=True).failures == () and len(computed) == 2
    looser = fresh_copy_again(evidence.run, "gates.length.max_len=9000")
    assert evaluate("length", Evidence(looser), 2).failures == () and len(computed) == 3


def test_a_pool_that_was_edited_between_the_rounds_is_red_in_the_second(fresh_copy: Callable[..., Run]) -> None:
    evidence = Evidence(fresh_copy())
    pool = evidence.path("pool")
    assert evaluate("duplicates", evidence, 1).failures == ()
    lines = [json.loads(line) for line in pool.read_bytes().splitlines()]
    copies = [line | {"id": f"{line['id']}-again"} for line in lines[:60]]
    pool.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *copies]))
    assert evaluate("duplicates", evidence, 2).failures != ()
    pool.unlink()
    assert evaluate("duplicates", evidence, 2).status is Status.ERROR


def test_a_red_verdict_is_found_anew_every_time(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, evidence = _counted(monkeypatch, "length"), Evidence(fresh_copy("gates.length.max_len=65"))
    assert [evaluate("length", evidence, number).status for number in (1, 2)] == [Status.FAILED] * 2
    assert len(computed) == 2


def test_a_gate_that_reads_the_world_is_evaluated_every_time(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, evidence = _counted(monkeypatch, "resources"), Evidence(fresh_copy())
    assert [evaluate("resources", evidence, number).status for number in (1, 2)] == [Status.PASSED] * 2
    assert len(computed) == 2


def test_what_is_judged_ahead_is_of_the_pool_alone() -> None:
    early = {name: spec for name, spec in BY_NAME.items() if of_the_pool_alone(spec)}
    assert early.keys() >= {"mix", "length", "diversity", "duplicates", "leakage", "consistency", "answer_rule"}
    read = {name for spec in early.values() for name in spec.reads}
    assert read == {"pool", "shadow", "takes", "templates", "reference_templates"}, "none of it is made behind the pool"
    assert not any(spec.reads_world for spec in early.values())


@pytest.fixture
def few_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what can be judged ahead there are two gates, one of them green and one red."""
    chosen = [spec for spec in gates.PREFLIGHT if not of_the_pool_alone(spec) or spec.name in ("length", "diversity")]
    monkeypatch.setattr(gates, "PREFLIGHT", tuple(chosen))


def test_the_round_takes_what_was_judged_ahead_and_finds_out_the_rest(
    fresh_copy: Callable[..., Run], few_early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fresh_copy("gates.diversity.min_distinct2=0.99")
    length, diversity = _counted(monkeypatch, "length"), _counted(monkeypatch, "diversity")
    with ThreadPoolExecutor(1) as judges, judging(run, judges) as begin:
        begin()
    assert (len(length), len(diversity)) == (1, 1)
    assert evaluate("length", Evidence(run), 1).status is Status.PASSED
    assert evaluate("diversity", Evidence(run), 1).status is Status.FAILED
    assert (len(length), len(diversity)) == (1, 2)


def test_another_process_judges_ahead_and_a_lost_one_says_nothing(
    fresh_copy: Callable[..., Run], few_early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fresh_copy("gates.diversity.min_distinct2=0.98", "pool.workers=2")
    with ahead(run) as begin:
        begin()
    assert not multiprocessing.active_children(), "no process for a pool that is judged as soon"
    here = {name: _counted(monkeypatch, name) for name in ("length", "diversity")}
    with worker_processes(1) as judges:
        with judging(run, judges) as begin:
            begin()
        assert evaluate("length", Evidence(run), 1).failures == () and not here["length"]
        assert not evaluate("length", Evidence(run), 1).given_again, "it was found in this very run"
        assert evaluate("diversity", Evidence(run), 1).failures and here["diversity"], "red is judged here again"
        with suppress(BrokenExecutor):
            judges.submit(os._exit, 1).result()
        with judging(run, judges) as begin:
            begin()
    assert evaluate("length", Evidence(run), 1).failures == ()


def test_a_fault_ahead_is_the_rounds_to_tell(
    fresh_copy: Callable[..., Run], few_early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_evidence: Evidence, _number: int) -> GateResult:
        raise ZeroDivisionError

    monkeypatch.setitem(BY_NAME, "diversity", replace(BY_NAME["diversity"], evaluate=broken))
    run = fresh_copy()
    with ThreadPoolExecutor(1) as judges, judging(run, judges) as begin:
        begin()
    assert evaluate("length", Evidence(run), 1).status is Status.PASSED
    with pytest.raises(ZeroDivisionError):
        evaluate("diversity", Evidence(run), 1)
