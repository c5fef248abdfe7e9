"""Errors of a preflight before it builds anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.preflight.preconditions import check_preconditions
from rc1_lib.run import open_run

LIVE = ("judge.provider=gemini", "judge.base_url=http://127.0.0.1:9/")


def test_unusable_live_judge_is_rejected_only_if_the_run_calls_it(tmp_path: Path) -> None:
    run = open_run(workspace=tmp_path, overrides=LIVE)
    with pytest.raises(ConfigError, match=r"judge\.model"):
        check_preconditions(run, calibrates=True, ticket=False)
    check_preconditions(run, calibrates=False, ticket=False)
    check_preconditions(
        open_run(workspace=tmp_path, overrides=(*LIVE, "judge.model=gemini-x")), calibrates=True, ticket=False
    )
    verified = (*LIVE, "training.reward.judge=0", "training.reward.success=1")
    check_preconditions(open_run(workspace=tmp_path, overrides=verified), calibrates=True, ticket=False)
    assert not list(tmp_path.iterdir())
