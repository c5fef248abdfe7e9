"""Does a live judge still grade as in its baseline? Asked before each segment whose episodes it scores.

A provider may change what answers under a name while a training runs, and the version that it names stays the same.
The nightly would see it, but a training does not wait for one, and learns from every grade until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.calibration.judge_baseline import JUDGE_BASELINE, drift_verdict
from rc1_lib.errors import RC1Error
from rc1_lib.judge.providers import LIVE
from rc1_lib.provenance.pinned_files import check_vouched
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState, sha256_json
from rc1_lib.workspace.file_hashes import sha256_file

CHECKS = "checks"
"""The folder of what was asked so, next to the replies about episodes: a store for every run, which shows its cost."""


def checks_of(run: Run, facts: Mapping[str, Any]) -> str:
    """The store of all that a run's checks have asked, below the workspace; `facts` decide which run it is."""
    return f"{run.config.training.reward.scores}/{CHECKS}/{sha256_json(facts)}.sqlite"


def check_grades(run: Run, where: str) -> str:
    """Ask a live judge again about the dialogues of its baseline, and compare by the gate `judge_drift`.

    A long training has hundreds of segments, and now and then noise alone looks like a change: what fails is asked
    about once more before it ends anything.

    Args:
        run: whose judge and baseline. Without a ticket, and without a baseline, there is nothing to compare with.
        where: the store that takes what is asked, as `checks_of` names it.

    Returns:
        What was found, for the log; empty where nobody was asked.

    Raises:
        RC1Error: when the judge grades otherwise, answers as another version or cannot be asked, or the baseline is
            not the one that the ticket vouches for.
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
            f"the judge that scores episodes no longer grades as in its baseline: {check.name} is "
            f"{check.value}, expected {check.op} {check.threshold}. {check.advice}. The checkpoints so far are kept; "
            f"`rc1 judge-drift` shows every check"
        )
    return f"the judge grades as in its baseline ({len(gate.checks)} checks)"
