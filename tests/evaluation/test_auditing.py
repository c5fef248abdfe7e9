"""Before training, RC1 checks that a live judge can be asked as often as the evaluation needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.auditing import check_audit
from rc1_lib.run import Run, open_run
from tests.judge.bench import overrides


def run_of(root: Path, *more: str, live: bool = True) -> Run:
    """A run with the shipped evaluation: 960 judged prompts, 3 samples."""
    judge = overrides("http://127.0.0.1:9/v1") if live else ()
    return open_run(profile="local", workspace=root, overrides=(*judge, "judge.samples=3", *more))


def test_call_budget_below_the_evaluations_need_is_rejected(tmp_path: Path) -> None:
    needed = 2 * 960 * 3
    check_audit(run_of(tmp_path, f"judge.budget.max_calls={needed}"), 1)
    with pytest.raises(ConfigError, match=rf"^judge\.budget\.max_calls .*5,759, .* 1 of `seeds` .*{needed:,}"):
        check_audit(run_of(tmp_path, f"judge.budget.max_calls={needed - 1}"), 1)
    with pytest.raises(ConfigError, match=r"^judge\.budget\.max_calls .* 3 of `seeds` .*11,520"):
        check_audit(run_of(tmp_path, f"judge.budget.max_calls={needed}"), 3)


def test_judge_without_a_model_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.model"):
        check_audit(run_of(tmp_path, "judge.model=null"), 1)


def test_judge_is_not_checked_if_it_is_not_asked(tmp_path: Path) -> None:
    check_audit(run_of(tmp_path, "judge.model=null", "training.held_out.judged=0"), 1)
    check_audit(run_of(tmp_path, "judge.budget.max_calls=1", live=False), 1)
