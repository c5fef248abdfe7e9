"""Check before each segment with a live judge that it still grades as in its baseline.

A provider may change the model while a training runs, without changing the version that it reports. The nightly would
notice, but a training does not wait for it and would learn from every grade until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.calibration.derived import JUDGE_BASELINE
from rc1_lib.calibration.judge_baseline import drift_verdict
from rc1_lib.check_words import check_line
from rc1_lib.errors import RC1Error
from rc1_lib.judge.providers import LIVE
from rc1_lib.provenance.pinned_files import check_vouched
from rc1_lib.run import Run
from rc1_lib.training.episode_judge import SCORES
from rc1_lib.workspace.artifacts import FileState, sha256_json
from rc1_lib.workspace.file_hashes import sha256_file

CHECKS = "checks"
"""Folder of these checks, next to the replies about episodes. Each run has its own store, which shows its cost."""


def checks_of(facts: Mapping[str, Any]) -> str:
    """Return the store of a run's checks, relative to the workspace. `facts` identify the run."""
    return f"{SCORES}/{CHECKS}/{sha256_json(facts)}.sqlite"


def check_grades(run: Run, where: str) -> str:
    """Ask a live judge again about the dialogues of its baseline, and compare with the gate `judge_drift`.

    A long training has hundreds of segments, and sometimes noise alone looks like a change. So a failure counts only if
    it is confirmed by a second round.

    Args:
        run: its judge and baseline. Without a ticket and a baseline there is nothing to compare with.
        where: the store for the replies, as named by `checks_of`.

    Returns:
        The result for the log; "" if the judge was not asked.

    Raises:
        RC1Error: if the judge grades differently, answers as another version or cannot be asked, or the baseline
            differs from the ticket.
    """
    path = JUDGE_BASELINE.path(run)
    if run.config.judge.provider not in LIVE:
        return ""
    if run.vouched is None and JUDGE_BASELINE.state(run) is FileState.MISSING:
        return ""
    check_vouched(run, JUDGE_BASELINE.name, path, sha256_file(path) if path.is_file() else None)
    gate = drift_verdict(run, where)
    if gate.failures:
        gate = drift_verdict(run, where)
    if gate.failures:
        check = gate.failures[0]
        raise RC1Error(
            f"the judge that scores episodes no longer grades as in its baseline: {check_line(check)}. {check.advice}. "
            f"The checkpoints so far are kept; the nightly shows every check"
        )
    return f"the judge grades as in its baseline ({len(gate.checks)} checks)"
