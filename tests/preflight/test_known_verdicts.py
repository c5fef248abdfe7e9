"""What an earlier process found green is given again on the same grounds, and on no others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration import judged_rows
from rc1_lib.errors import TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.preflight import known_verdicts
from rc1_lib.preflight.gates import BY_NAME, as_found_here, evaluate, gates_of_round
from rc1_lib.preflight.ticket import issue_ticket
from rc1_lib.records import GateResult, Status
from rc1_lib.reward.comparison import Comparison, compare
from rc1_lib.run import VERDICTS, Run, open_run
from rc1_lib.scoring.judged import Judged
from rc1_lib.task_specs import registered, task_spec
from rc1_lib.workspace import file_hashes
from rc1_lib.workspace.artifacts import read_json, sha256_json, write_json
from rc1_lib.workspace.file_hashes import hashes_known
from tasks.gates import files_now, files_read
from tasks.sentences import gate_sentence
from tests.conftest import SMALL, Verdicts

Computed = list[str]
GATE = "length"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where verdicts are kept."""
    monkeypatch.setenv(VERDICTS, str(tmp_path / "verdicts"))
    return tmp_path / "verdicts"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Computed:
    """Grows by one whenever the gate is computed."""
    found: Computed = []
    spec = BY_NAME[GATE]

    def look(evidence: Evidence, number: int) -> GateResult:
        found.append(GATE)
        return spec.evaluate(evidence, number)

    monkeypatch.setitem(BY_NAME, GATE, replace(spec, evaluate=look))
    return found


@pytest.fixture
def another_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forgets what this process knows."""
    monkeypatch.setattr(known_verdicts, "_HERE", {})
    return lambda: known_verdicts._HERE.clear()


def own_copy(run: Run, file: str) -> Path:
    """What a gate reads in the workspace's own copy; of a folder the first file in it."""
    there, own = Evidence(run).path(file), run.workspace.path(Evidence(run).label(file))
    own.parent.mkdir(parents=True, exist_ok=True)
    if there != own:
        shutil.copytree(there, own)
    if own.is_dir():
        return min(path for path in own.rglob("*") if path.is_file())
    return own


def kept_file(folder: Path) -> Path:
    (found,) = folder.rglob(f"{GATE}.json")
    return found


def test_every_verdict_comes_back_as_it_was(
    built: Run, verdicts: Verdicts, folder: Path, another_process: Callable[[], None]
) -> None:
    of_files = {spec.name for spec in gates_of_round(1) if not spec.reads_world}
    found = [result for result in verdicts[1] if result.name in of_files]
    for result in found:
        known_verdicts.remember(built.workspace, "the same grounds", result)
    another_process()
    recalled = [known_verdicts.recall(built.workspace, one.name, "the same grounds") for one in found]
    assert recalled == found and {one.name for one in recalled if one and one.given_again} == of_files
    assert known_verdicts.recall(built.workspace, found[0].name, "other grounds") is None


def test_another_process_is_given_the_verdict_and_told_so(
    fresh_copy: Callable[..., Run], folder: Path, computed: Computed, another_process: Callable[[], None]
) -> None:
    evidence = Evidence(fresh_copy())
    first = evaluate(GATE, evidence, 1)
    assert not first.given_again and not evaluate(GATE, evidence, 2).given_again, "the same process judged it"
    another_process()
    again = evaluate(GATE, evidence, 1)
    assert again == evaluate(GATE, evidence, 2) == first and len(computed) == 1
    assert again.given_again and GateResult.from_dict(again.to_dict()).given_again
    assert "found by an earlier run" in gate_sentence(again) and "earlier" not in gate_sentence(first)
    assert not evaluate(GATE, evidence, 1, anew=True).given_again and len(computed) == 2


def test_what_a_process_of_the_same_run_found_is_no_earlier_runs(
    fresh_copy: Callable[..., Run], folder: Path, another_process: Callable[[], None]
) -> None:
    """Round 1 judges in one process beside the run's own, round 2 in another."""
    run = fresh_copy()
    first = as_found_here(run, evaluate(GATE, Evidence(run), 1))
    another_process()
    second = evaluate(GATE, Evidence(run), 2)
    assert second.given_again and as_found_here(run, second).given_again, "this process knows of nobody else's"
    another_process()
    as_found_here(run, first)
    assert not as_found_here(run, second).given_again
    assert as_found_here(run, replace(second, evidence={"pool": "other bytes"})).given_again


def test_one_byte_another_configuration_or_other_code_is_judged_anew(
    fresh_copy: Callable[..., Run],
    folder: Path,
    computed: Computed,
    another_process: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = fresh_copy()
    evaluate(GATE, Evidence(run), 1)
    pool = Evidence(run).path("pool")
    body, written = pool.read_bytes(), pool.stat().st_mtime_ns
    another_process()
    pool.write_bytes(body.replace(b" the ", b" teh ", 1))
    os.utime(pool, ns=(written, written))
    evaluate(GATE, Evidence(run), 1)
    assert len(computed) == 2, "neither size nor time of the last write says what a file holds"
    pool.write_bytes(body)
    another_process()
    evaluate(GATE, Evidence(run), 1)
    assert len(computed) == 3, "one verdict of a gate is kept, the newest; what follows differs from it in one thing"
    another_process()
    looser = open_run(profile="local", workspace=run.workspace.root, overrides=(*SMALL, "gates.length.max_len=9000"))
    evaluate(GATE, Evidence(looser), 1)
    assert len(computed) == 4
    another_process()
    monkeypatch.setattr("rc1_lib.preflight.gates.code_sha256", lambda: "other code")
    evaluate(GATE, Evidence(looser), 1)
    assert len(computed) == 5


def test_a_byte_of_whatever_a_gate_reads_has_it_judged_anew(
    built: Run,
    verdicts: Verdicts,
    fresh_copy: Callable[..., Run],
    folder: Path,
    another_process: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = fresh_copy()
    config = run.workspace.path("own.yaml")
    config.write_text(built.effective_config(), encoding="utf-8")
    run = open_run(config=config, workspace=run.workspace.root, overrides=SMALL)
    green = {result.name: result for result in verdicts[1]}
    looked: Computed = []
    for spec in gates_of_round(1):
        if spec.reads_world:
            continue

        def look(_: Evidence, __: int, name: str = spec.name) -> GateResult:
            looked.append(name)
            return green[name]

        monkeypatch.setitem(BY_NAME, spec.name, replace(spec, evaluate=look))
        evaluate(spec.name, Evidence(run), 1)
        for file in spec.reads:
            path = own_copy(run, file)
            body = path.read_bytes()
            for content, judged in ((body, []), (body + b"\n", [spec.name]), (body, [spec.name])):
                path.write_bytes(content)
                looked.clear()
                another_process()
                evaluate(spec.name, Evidence(run), 1)
                assert looked == judged, f"{spec.name}: {file}"


def test_a_verdict_is_kept_for_nobody_where_a_file_was_another_while_it_was_read(
    fresh_copy: Callable[..., Run],
    folder: Path,
    another_process: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, spec, judged = fresh_copy(), BY_NAME[GATE], []

    def swapped(evidence: Evidence, number: int) -> GateResult:
        pool = evidence.path("pool")
        honest = pool.read_bytes()
        pool.write_bytes(b"")
        pool.write_bytes(honest)
        judged.append(number)
        return spec.evaluate(evidence, number)

    monkeypatch.setitem(BY_NAME, GATE, replace(spec, evaluate=swapped))
    for looks in (1, 2):
        assert evaluate(GATE, Evidence(run), 1).failures == ()
        another_process()
        assert len(judged) == looks
    monkeypatch.setitem(BY_NAME, GATE, spec)
    assert not evaluate(GATE, Evidence(run), 1).given_again
    another_process()
    assert evaluate(GATE, Evidence(run), 1).given_again


def test_a_verdict_is_kept_for_nobody_where_a_file_was_written_once_it_was_hashed(
    fresh_copy: Callable[..., Run],
    folder: Path,
    another_process: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, sha256 = fresh_copy(), Evidence.sha256

    def hashed_and_written(evidence: Evidence, name: str) -> str:
        found, path = sha256(evidence, name), evidence.path(name)
        if path.is_file():
            path.write_bytes(path.read_bytes())
        return found

    monkeypatch.setattr(Evidence, "sha256", hashed_and_written)
    for _ in range(2):
        found = evaluate(GATE, Evidence(run), 1)
        assert found.failures == () and not found.error and not found.given_again
        another_process()


def test_a_red_verdict_is_kept_for_nobody(
    fresh_copy: Callable[..., Run], folder: Path, computed: Computed, another_process: Callable[[], None]
) -> None:
    evidence = Evidence(fresh_copy("gates.length.max_len=65"))
    for _ in range(2):
        assert evaluate(GATE, evidence, 1).failures
        another_process()
    assert len(computed) == 2 and not list(folder.rglob("*.json"))


def test_who_can_merely_write_the_workspace_puts_no_verdict_there(
    fresh_copy: Callable[..., Run],
    computed: Computed,
    another_process: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    evidence = Evidence(fresh_copy())
    root = evidence.run.workspace.root
    (tmp_path / "link").symlink_to(root / "kept")
    (root / "kept").mkdir()
    around = tmp_path / "w" / ".." / "workspace" / "kept"
    for named in (str(root / "kept"), str(tmp_path / "link"), str(around), "", "."):
        monkeypatch.setenv(VERDICTS, named)
        evaluate(GATE, evidence, 1)
        another_process()
    assert len(computed) == 5 and not list((root / "kept").rglob("*"))


def test_a_folder_that_others_can_write_is_not_believed(
    fresh_copy: Callable[..., Run], folder: Path, computed: Computed, another_process: Callable[[], None]
) -> None:
    evidence = Evidence(fresh_copy())
    evaluate(GATE, evidence, 1)
    kept_file(folder).parent.chmod(0o770)
    another_process()
    evaluate(GATE, evidence, 1)
    assert len(computed) == 2


@pytest.mark.parametrize("damage", ["edited", "raised", "cut", "of another gate"])
def test_a_kept_verdict_that_was_damaged_is_not_given(
    damage: str,
    fresh_copy: Callable[..., Run],
    folder: Path,
    computed: Computed,
    another_process: Callable[[], None],
) -> None:
    evidence = Evidence(fresh_copy())
    evaluate(GATE, evidence, 1)
    kept = kept_file(folder)
    body = read_json(kept)
    said = {name: part for name, part in body.items() if name != "sha256"}
    if damage == "edited":
        body["verdict"]["checks"][0]["value"] += 1
    elif damage == "raised":  # a red value below the word `passed`, and the fingerprint worked out again
        said["verdict"]["checks"][0] |= {"value": 1e9, "op": "<=", "threshold": 1}
        body = {**said, "sha256": sha256_json(said)}
    elif damage == "of another gate":
        said["verdict"]["name"] = "mix"
        body = {**said, "sha256": sha256_json(said)}
    write_json(kept, body)
    if damage == "cut":
        kept.write_bytes(kept.read_bytes()[:100])
    another_process()
    assert evaluate(GATE, evidence, 1).failures == ()
    assert len(computed) == 2


def test_beside_a_task_whose_source_no_fingerprint_covers_nothing_is_kept_or_believed(
    fresh_copy: Callable[..., Run], folder: Path, computed: Computed, another_process: Callable[[], None]
) -> None:
    evidence = Evidence(fresh_copy())
    evaluate(GATE, evidence, 1)
    another_process()
    with registered(replace(task_spec("gsm8k"), name="mine")):
        assert not evaluate(GATE, evidence, 1).given_again and len(computed) == 2
        kept_file(folder).unlink()
        evaluate(GATE, evidence, 1, anew=True)
    assert not list(folder.rglob("*.json"))


def test_where_nothing_can_be_kept_the_verdict_is_the_same(
    fresh_copy: Callable[..., Run], folder: Path, computed: Computed, another_process: Callable[[], None]
) -> None:
    folder.write_text("a file in the way")
    evidence = Evidence(fresh_copy())
    assert evaluate(GATE, evidence, 1).failures == ()
    another_process()
    assert evaluate(GATE, evidence, 1).failures == ()
    assert len(computed) == 2


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Computed:
    """Grows by one whenever the shadow run compares."""
    found: Computed = []

    def look(*given: Any, **named: Any) -> Comparison:
        found.append("shadow_run")
        return compare(*given, **named)

    monkeypatch.setattr("rc1_lib.calibration.shadow_run.compare", look)
    return found


def test_the_shadow_run_is_compared_again_where_a_score_or_what_it_left_is_another(
    fresh_copy: Callable[..., Run],
    folder: Path,
    compared: Computed,
    another_process: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = fresh_copy("gates.shadow_run.resamples=20")
    place = run.workspace

    def again() -> tuple[bool, int]:
        another_process()
        found = evaluate("shadow_run", Evidence(run), 2)
        assert found.failures == () and not found.error
        return found.given_again, len(compared)

    assert again() == (False, 1)
    assert again() == (True, 1)
    wanted = 1
    leaves = {where: place.path(where) for where in BY_NAME["shadow_run"].leaves}
    before = {path: path.stat().st_mtime_ns for path in (place.root / "reports").rglob("*") if path.is_file()}
    report, *_, picture = leaves.values()
    for damage in (lambda: report.write_bytes(report.read_bytes() + b"\n"), picture.unlink):
        damage()
        wanted += 1
        assert again() == (False, wanted)
        assert again() == (True, wanted), "and what it has written lies there again"
    written = {path for path, at in before.items() if path.stat().st_mtime_ns != at}
    assert written == set(leaves.values()), "a report beside these would not be missed"
    assert len(report.read_bytes()) > 1000
    shutil.rmtree(place.path(run.config.judge.store.path).parent)
    assert again() == (True, wanted), "the judge says the same where nothing is stored"

    def graded_otherwise(*given: Any) -> Judged:
        judged = scored(*given)
        return replace(judged, rows=judged.rows.with_columns(pl.col("reasoned") * 0.99))

    scored = judged_rows._scored
    monkeypatch.setattr(judged_rows, "_scored", graded_otherwise)
    assert again() == (False, wanted + 1)
    another_process()
    assert not evaluate("shadow_run", Evidence(run), 2, anew=True).given_again


def test_integrity_is_given_again_only_where_every_data_file_is_fresh(
    fresh_copy: Callable[..., Run], folder: Path, another_process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fresh_copy()
    evidence, spec = Evidence(run), BY_NAME["integrity"]
    manifest = run.workspace.manifest_path(run.config.pool.path)
    honest = manifest.read_bytes()

    def again() -> GateResult:
        another_process()
        return evaluate("integrity", evidence, 1)

    def mended(of: Evidence, number: int) -> GateResult:
        manifest.write_bytes(honest)
        return spec.evaluate(of, number)

    manifest.unlink()
    with monkeypatch.context() as patched:
        patched.setitem(BY_NAME, "integrity", replace(spec, evaluate=mended))
        assert again().status is Status.PASSED, "its file was mended between the look and the verdict"
    manifest.unlink()
    assert again().status is Status.FAILED
    manifest.write_bytes(honest)
    assert [again().given_again for _ in range(2)] == [False, True]
    manifest.write_bytes(honest.replace(b'"code"', b'"other code"'))
    assert again().status is Status.FAILED


def test_a_live_judge_is_asked_and_compared_every_time(
    fresh_copy: Callable[..., Run], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = Evidence(fresh_copy())
    monkeypatch.setattr(judged_rows, "LIVE", {evidence.run.config.judge.provider})
    assert BY_NAME["shadow_run"].world(evidence) is None


def test_an_edit_that_leaves_no_mark_is_seen_at_the_end_of_the_round(
    passed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As written through a mapping: inode, size and both times are what they were."""
    monkeypatch.setattr(file_hashes, "_stamp", lambda found: (found.st_ino, 0, 0, 0, 0))
    evidence = Evidence(passed)
    pool = evidence.path("pool")
    with hashes_known():
        before = evaluate(GATE, evidence, 1)
        pool.write_bytes(pool.read_bytes().replace(b" the ", b" teh ", 1))
        assert evaluate(GATE, evidence, 1).evidence == before.evidence, "it left no mark"
        assert files_read(GATE, files_now(passed)) != before.evidence
        pool.write_bytes(pool.read_bytes().replace(b" teh ", b" the ", 1))
        assert files_read(GATE, files_now(passed)) == before.evidence
        pool.write_bytes(pool.read_bytes().replace(b" the ", b" teh ", 1))
        with pytest.raises(TicketError, match=r"rc1_seed\.jsonl is not what round 1 read"):
            issue_ticket(passed)
