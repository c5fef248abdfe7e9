"""Who judges an evaluation's episodes: whether a live judge can be asked as often is looked at before the training."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.auditing import check_audit
from rc1_lib.run import Run, open_run
from tests.judge.bench import overrides


def run_of(root: Path, *more: str, live: bool = True) -> Run:
    """The shipped evaluation: 960 judged prompts, three checkpoints on the way with 240 each, three samples."""
    judge = overrides("http://127.0.0.1:9/v1") if live else ()
    return open_run(profile="local", workspace=root, overrides=(*judge, "judge.samples=3", *more))


def test_a_budget_that_the_evaluation_may_outrun_is_refused(tmp_path: Path) -> None:
    needed = (2 * 960 + 3 * 240) * 3
    check_audit(run_of(tmp_path, f"judge.budget.max_calls={needed}"), 1)
    with pytest.raises(ConfigError, match=rf"^judge\.budget\.max_calls .*7,919, .* 1 of `seeds` .*{needed:,}"):
        check_audit(run_of(tmp_path, f"judge.budget.max_calls={needed - 1}"), 1)
    with pytest.raises(ConfigError, match=r"^judge\.budget\.max_calls .* 3 of `seeds` .*18,000"):
        check_audit(run_of(tmp_path, f"judge.budget.max_calls={needed}"), 3)


def test_a_judge_that_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.model"):
        check_audit(run_of(tmp_path, "judge.model=null"), 1)


def test_where_nobody_is_asked_nothing_is_wanted(tmp_path: Path) -> None:
    check_audit(run_of(tmp_path, "judge.model=null", "training.held_out.judged=0"), 1)
    check_audit(run_of(tmp_path, "judge.budget.max_calls=1", live=False), 1)
