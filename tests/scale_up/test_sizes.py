"""The sizes of a growing pool: nested draws, what a recorded size is valid for, and what is rejected."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.scale_up import record
from rc1_lib.scale_up.looks import AFTER, BEFORE, GROWTH, STABILITY, Look, evaluate_gate
from rc1_lib.scale_up.report import REPORT, measures, table, write_report
from rc1_lib.scale_up.sizes import Step, grow, sized, steps
from rc1_lib.workspace.artifacts import read_json
from tests.conftest import copied_pool

SIZES = ("scale_up.sizes=[300, 600, 1200]",)
FIRST, SECOND = Step(0, 300), Step(300, 600)


def rows_path(run: Run, size: int) -> Path:
    return run.workspace.path(sized(run, size).config.pool.path)


def reached(run: Run, step: Step) -> list[Look]:
    """Grow to a size, and evaluate the gates before and after."""
    before = [Look(step.smaller, True, tuple(evaluate_gate(run, step, name, again=True) for name in BEFORE))]
    grow(run, step.size, "auto")
    after = Look(step.size, False, tuple(evaluate_gate(run, step, name, again=False) for name in AFTER))
    return [*(before if step.smaller else []), after]


Grown = tuple[Run, dict[Step, list[Look]]]


@pytest.fixture(scope="module")
def grown(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """A workspace with the first two sizes, and their gate results. Read only: a test that writes takes `run`."""
    root = copied_pool(built, tmp_path_factory.mktemp("grown") / "workspace")
    run = _under(built, *SIZES, root=root)
    return run, {step: reached(run, step) for step in (FIRST, SECOND)}


@pytest.fixture
def run(grown: Grown, tmp_path: Path) -> Run:
    """A copy of it that a test may write to."""
    root = tmp_path / "workspace"
    shutil.copytree(grown[0].workspace.root, root)
    return _under(grown[0], root=root)


def test_sizes_are_nested_and_keep_the_task_mix(run: Run) -> None:
    small, larger, whole = (rows_path(run, size).read_bytes().splitlines() for size in (300, 600, 1200))
    assert (len(small), len(larger)) == (300, 600)
    assert set(small) < set(larger) < set(whole)
    assert Counter(orjson.loads(line)["task"] for line in small) == {"hotpotqa": 135, "strategyqa": 90, "gsm8k": 75}
    assert not grow(run, 600, "auto"), "a fresh size is not written again"


def test_size_record_is_valid_only_for_its_files_and_thresholds(grown: Grown, run: Run) -> None:
    for step, looks in grown[1].items():
        assert [look.passed for look in looks] == [True] * len(looks), [look.results for look in looks]
        path = run.workspace.path(record.write_record(run, step, looks))
        assert [(look.title, look.passed) for look in record.read_record(run, step)] == [
            (one.title, True) for one in looks
        ]
    assert not record.read_record(_under(run, "gates.difficulty.len_max=1"), SECOND)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"0.", b"1.", 1))
    assert not record.read_record(run, SECOND), "an edited record is not valid"
    path.write_bytes(before)
    assert record.read_record(run, SECOND)
    smaller = rows_path(run, 300)
    smaller.write_bytes(smaller.read_bytes()[:-1])
    assert not record.read_record(run, SECOND), "a record is about the smaller size, too"
    with pytest.raises(RC1Error, match=r"rc1_seed_300\.jsonl: .*altered"):
        grow(run, 300, "auto")


def test_size_whose_judge_was_not_asked_is_judged_once_its_score_is_paid(grown: Grown, run: Run) -> None:
    unpaid = _under(run, "training.reward.judge=0", "training.reward.success=1")
    stability = evaluate_gate(unpaid, FIRST, STABILITY, again=False)
    assert stability.status is Status.NOT_APPLICABLE
    [look] = grown[1][FIRST]
    record.write_record(unpaid, FIRST, [replace(look, results=(*look.results[:-1], stability))])
    assert record.read_record(unpaid, FIRST) and not record.read_record(run, FIRST)


def _under(run: Run, *overrides: str, root: Path | None = None) -> Run:
    return open_run(profile="local", workspace=root or run.workspace.root, overrides=(*run.overrides, *overrides))


def test_missing_row_of_the_smaller_size_fails_only_its_growth_check(run: Run) -> None:
    larger, lost = rows_path(run, 600), rows_path(run, 300).read_bytes().splitlines(keepends=True)[0]
    other = orjson.dumps(orjson.loads(lost), option=orjson.OPT_SORT_KEYS) + b"\n"
    larger.write_bytes(larger.read_bytes().replace(lost, other))
    result = evaluate_gate(run, SECOND, GROWTH, again=False)
    assert [(check.name, check.value) for check in result.failures] == [("rows of the smaller size that are gone", 1)]
    larger.write_bytes(larger.read_bytes().replace(other, b""))
    names = {check.name for check in evaluate_gate(run, SECOND, GROWTH, again=False).failures}
    assert names == {"rows", "rows of the smaller size that are gone"}
    larger.unlink()
    assert evaluate_gate(run, SECOND, GROWTH, again=False).status is Status.ERROR


def test_report_has_a_row_per_measure_and_a_column_per_evaluation(grown: Grown, run: Run) -> None:
    looks = [look for found in grown[1].values() for look in found]
    write_report(run, looks, "so far")
    report = read_json(run.workspace.path(REPORT))
    assert report["pass"] is False, "the pool's full size is not reached"
    changed = {one["key"]: one["published"] for one in report["thresholds_changed"]}
    assert changed["scale_up.sizes"] == [1000, 5000, 30000], "smaller sizes than the published ones"
    assert [list(row)[2:] for row in report["table"]] == [["300", "300 again", "600"]] * len(report["table"])
    assert {name.partition(":")[0] for name in measures(looks)} == set(AFTER)
    assert all(not row["measure"].endswith("]") for row in table(looks))
    assert run.workspace.path(report["plots"]["every measure against size"]).read_bytes().startswith(b"\x89PNG")


def test_sizes_that_do_not_rise_to_the_pool_size_are_rejected(fresh_copy: Callable[..., Run]) -> None:
    with pytest.raises(ConfigError, match=r"^scale_up\.sizes: .*600, .*1200 \(pool\.n\)"):
        steps(run := fresh_copy("scale_up.sizes=[300, 600]"))
    with pytest.raises(ConfigError, match=r"scale_up.*\[600, 600, 1200\]"):
        _under(run, "scale_up.sizes=[600, 600, 1200]")
    with pytest.raises(RC1Error, match=r"360 .*strategyqa.* scale_up\.sizes .*420"):
        grow(_under(run, "datasets={hotpotqa: 0.2, strategyqa: 0.7, gsm8k: 0.1}"), 600, "auto")
