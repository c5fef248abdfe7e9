"""A gate's verdict is cached by the content of all that decides it, and a cached one is never believed unchecked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import State, flow
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH

from flows.rounds import JudgedRound, judge_round
from rc1_lib.code import code_sha256
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, open_run
from tasks.gates import files_now, files_read, gate, gate_key

Copy = Callable[..., Run]


def ask(run: Run, name: str, code: str) -> State[Any]:
    """Run one gate's task alone, in round 1, as if the code had the fingerprint `code`."""
    state: State[Any] = gate(run, name, 1, files_read(name, files_now(run)), code, return_state=True)
    return state


def stored(run: Run, name: str) -> Path:
    """Where the verdict of a gate in round 1 is kept for the next time that all it hangs on is the same."""
    parameters = {"run": run, "name": name, "number": 1, "files": files_read(name, files_now(run))}
    key = gate_key(None, {**parameters, "code": code_sha256()})
    assert key is not None
    return Path(PREFECT_LOCAL_STORAGE_PATH.value()) / key


def judge(run: Run) -> JudgedRound:
    @flow
    def round_1() -> JudgedRound:
        return judge_round(run, 1)

    return round_1()


def test_an_identical_gate_is_cached_and_says_the_same(built: Run) -> None:
    first, second = ask(built, "mix", "same"), ask(built, "mix", "same")
    assert [first.name, second.name] == ["GatePassed", "Cached"]
    assert GateResult.from_dict(first.result()) == GateResult.from_dict(second.result())


def test_one_changed_byte_of_the_pool_misses_the_cache(fresh_copy: Copy) -> None:
    run = fresh_copy()
    assert [ask(run, "mix", "byte").name for _ in range(2)] == ["GatePassed", "Cached"]
    pool = run.workspace.path(run.config.pool.path)
    before, word = pool.read_bytes(), b'"role":"user","content":"'
    place = before.index(word) + len(word)
    pool.write_bytes(before[:place] + b"?" + before[place + 1 :])
    # The mix does not hang on a letter: the verdict is the same, and was found anew.
    assert [ask(run, "mix", "byte").name for _ in range(2)] == ["GatePassed", "Cached"]


def test_changed_code_misses_the_cache(built: Run) -> None:
    assert [ask(built, "mix", code).name for code in ("before", "before")] == ["GatePassed", "Cached"]
    assert ask(built, "mix", "after").name == "GatePassed"


def test_a_changed_threshold_misses_the_cache(built: Run) -> None:
    assert [ask(built, "mix", "threshold").name for _ in range(2)] == ["GatePassed", "Cached"]
    looser = (*built.overrides, "gates.mix.tolerance_pp=3.5")
    run = open_run(profile="local", workspace=built.workspace.root, overrides=looser)
    assert ask(run, "mix", "threshold").name == "GatePassed"


def test_a_failed_verdict_is_evaluated_again_and_never_shown_as_a_green_cached_one(fresh_copy: Copy) -> None:
    run = fresh_copy("gates.length.max_len=65")
    first, second = ask(run, "length", "red"), ask(run, "length", "red")
    assert [first.name, second.name] == ["GateFailed", "GateFailed"]
    assert second.is_failed() and "wanted <= 65" in str(second.message)


@pytest.mark.parametrize("name", ["git", "resources", "integrity", "judge_probe"])
def test_a_gate_that_reads_the_world_has_no_cache_key(built: Run, name: str) -> None:
    files = files_read(name, files_now(built))
    assert gate_key(None, {"run": built, "name": name, "number": 1, "files": files, "code": "c"}) is None


def test_a_gate_whose_file_is_missing_is_an_error_and_not_cached(fresh_copy: Copy) -> None:
    run = fresh_copy()
    run.workspace.path(run.config.pool.path).unlink()
    first, second = ask(run, "mix", "missing"), ask(run, "mix", "missing")
    assert [first.name, second.name] == ["GateError", "GateError"]


def test_damaged_caches_are_evaluated_again(green_copy: Run) -> None:
    damages = {"mix": b"", "length": b"{", "overclar_penalty": b'{"metadata": 1, "result": null}'}
    for name, damage in damages.items():
        assert stored(green_copy, name).is_file()
        stored(green_copy, name).write_bytes(damage)
    judged = judge(green_copy)
    assert judged.faults == {}
    assert {result.status for result in judged.results if result.name in damages} == {Status.PASSED}


def test_a_cached_verdict_of_another_gate_is_not_believed(green_copy: Run, caplog: pytest.LogCaptureFixture) -> None:
    judge(green_copy)  # an earlier test may have damaged what is stored
    assert stored(green_copy, "training_config").is_file()
    shutil.copy(stored(green_copy, "overclar_penalty"), stored(green_copy, "training_config"))
    by_name = {result.name: result for result in judge(green_copy).results}
    assert "evaluated once more, without the cache: training_config" in caplog.text
    assert by_name["training_config"].status is Status.PASSED
    assert by_name["training_config"].checks != by_name["overclar_penalty"].checks
