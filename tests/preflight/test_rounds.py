"""Profiles, waivers and errors in the rounds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import BY_NAME, evaluate, files_of, gates_of_round
from rc1_lib.preflight.round_report import round_passed
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.conftest import SMALL, Verdicts


def test_prod_without_a_judge_key_fails_and_no_other_judge_is_used(fresh_copy: Callable[..., Run]) -> None:
    root = fresh_copy().workspace.root
    prod = open_run(profile="prod", workspace=root)
    gates = [evaluate(name, Evidence(prod), 1) for name in ("judge_probe", "anti_simulation", "judge_stability")]
    assert [gate.status for gate in gates] == [Status.ERROR] * 3
    assert "SCORER_API_KEY" in gates[0].error
    assert not round_passed(gates, 1)


def test_missing_usage_log_is_an_error(fresh_copy: Callable[..., Run]) -> None:
    evidence = Evidence(fresh_copy("gates.waivers={}"))
    for name in ("anti_simulation", "judge_stability"):
        result = evaluate(name, evidence, 1)
        assert result.status is Status.ERROR
        assert "no usage log" in result.error


def test_rubric_passes_probe_and_stability_but_not_as_a_billed_judge(fresh_copy: Callable[..., Run]) -> None:
    evidence = Evidence(fresh_copy("gates.waivers={}"))
    assert evaluate("judge_probe", evidence, 1).failures == ()
    assert evaluate("judge_stability", evidence, 1).failures == ()
    assert "billed scorings" in {check.name for check in evaluate("anti_simulation", evidence, 1).failures}
    settings = (*SMALL, "gates.probe.require_billed=true")
    billed = Evidence(open_run(profile="local", workspace=evidence.run.workspace.root, overrides=settings))
    assert "billed calls" in {check.name for check in evaluate("judge_probe", billed, 1).failures}


@pytest.mark.parametrize(
    "name",
    ["mix", "difficulty"],
)
def test_missing_pool_is_an_error(name: str, fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    for file in ("pool", "balanced"):
        Evidence(run).path(file).unlink()
    result = evaluate(name, Evidence(run), 1)
    assert result.status is Status.ERROR
    assert "file not found" in result.error


def _count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """A list that grows by one at each computation of the gate."""
    computed: list[str] = []
    spec = BY_NAME[name]

    def look(evidence: Evidence, number: int) -> GateResult:
        computed.append(name)
        return spec.gate(evidence, number)

    monkeypatch.setitem(BY_NAME, name, replace(spec, gate=look))
    return computed


def test_round_2_reuses_a_verdict_of_round_1_on_the_same_bytes(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, evidence = _count_calls(monkeypatch, "length"), Evidence(fresh_copy())
    first = evaluate("length", evidence, 1)
    assert evaluate("length", evidence, 2, first) is first and len(computed) == 1
    assert evaluate("length", evidence, 2) == first and len(computed) == 2, "without the first verdict it is computed"


def _own_copy(run: Run, file: str) -> Path:
    """The workspace's copy of a file that a gate reads, or the first file of a folder."""
    there, own = Evidence(run).path(file), run.workspace.path(Evidence(run).label(file))
    own.parent.mkdir(parents=True, exist_ok=True)
    if there != own:
        shutil.copytree(there, own)
    if own.is_dir():
        return min(path for path in own.rglob("*") if path.is_file())
    return own


def test_gate_is_evaluated_again_when_a_byte_of_its_files_changed(
    built: Run, verdicts: Verdicts, fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fresh_copy()
    config = run.workspace.path("own.yaml")
    config.write_text(built.effective_config(), encoding="utf-8")
    run = open_run(config=config, workspace=run.workspace.root, overrides=SMALL)
    passed = {result.name: result for result in verdicts[1]}
    evaluated: list[str] = []
    for spec in gates_of_round(1):
        if spec.reads_world:
            continue

        def look(_: Evidence, __: int, name: str = spec.name) -> GateResult:
            evaluated.append(name)
            return passed[name]

        monkeypatch.setitem(BY_NAME, spec.name, replace(spec, gate=look))
        for file in files_of(spec, run):
            path = _own_copy(run, file)
            before, body = evaluate(spec.name, Evidence(run), 1), path.read_bytes()
            for content, expected in ((body, []), (body + b"\n", [spec.name])):
                path.write_bytes(content)
                evaluated.clear()
                evaluate(spec.name, Evidence(run), 2, before)
                assert evaluated == expected, f"{spec.name}: {file}"
            path.write_bytes(body)


def test_verdict_is_not_reused_when_a_file_was_written_during_the_gate(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes before and after are the same, but the gate may have read others."""
    run, spec = fresh_copy(), BY_NAME["length"]

    def swapped(evidence: Evidence, number: int) -> GateResult:
        pool = evidence.path("pool")
        original = pool.read_bytes()
        pool.write_bytes(b"")
        pool.write_bytes(original)
        return spec.gate(evidence, number)

    monkeypatch.setitem(BY_NAME, "length", replace(spec, gate=swapped))
    found = evaluate("length", Evidence(run), 1)
    assert found.status is Status.PASSED and found.evidence == {}
    monkeypatch.setitem(BY_NAME, "length", spec)
    computed = _count_calls(monkeypatch, "length")
    assert evaluate("length", Evidence(run), 2, found).evidence and len(computed) == 1


def test_pool_edited_between_the_rounds_fails_in_round_2(fresh_copy: Callable[..., Run]) -> None:
    evidence = Evidence(fresh_copy())
    pool = evidence.path("pool")
    first = evaluate("duplicates", evidence, 1)
    assert first.failures == ()
    lines = [json.loads(line) for line in pool.read_bytes().splitlines()]
    copies = [line | {"id": f"{line['id']}-again"} for line in lines[:60]]
    pool.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *copies]))
    assert evaluate("duplicates", evidence, 2, first).failures != ()
    pool.unlink()
    assert evaluate("duplicates", evidence, 2, first).status is Status.ERROR


@pytest.mark.parametrize(
    ("name", "override", "status"),
    [("length", "gates.length.max_len=65", Status.FAILED), ("resources", "pool.seed=42", Status.PASSED)],
)
def test_failed_gate_and_gate_on_the_machine_are_evaluated_in_both_rounds(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, name: str, override: str, status: Status
) -> None:
    computed, evidence = _count_calls(monkeypatch, name), Evidence(fresh_copy(override))
    first = evaluate(name, evidence, 1)
    assert [first.status, evaluate(name, evidence, 2, first).status] == [status] * 2
    assert len(computed) == 2


def test_altered_reference_templates_fail_the_diversity_gate(passed: Run) -> None:
    assert evaluate("diversity", Evidence(passed), 1).status is Status.PASSED
    shutil.copytree(PROJECT_ROOT / "templates/pack_v1", own := passed.workspace.path("templates/pack_v1"))
    assert evaluate("diversity", Evidence(passed), 1).status is Status.PASSED, "an identical copy is accepted"
    file = own / "maths.en.json"
    file.write_text(file.read_text().replace("Answer", "Reply").replace("you", "thee"))
    failures = evaluate("diversity", Evidence(passed), 1).failures
    assert [check.name for check in failures] == ["old pack is the project's own"]
