"""The machine and the code: free disk space, and the git commit that names the code."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from rc1_lib.checks import above, equal, info
from rc1_lib.config.thresholds import GitGate, ResourcesGate
from rc1_lib.records import GateResult
from rc1_lib.workspace.free_space import free_bytes


@dataclass(frozen=True, slots=True)
class GitState:
    """What git reports about the project.

    Attributes:
        commit: None outside a repository or without git.
        changed: changed and untracked paths; None if git could not list them.
    """

    commit: str | None
    changed: tuple[str, ...] | None


def free_gb(folder: Path) -> float:
    """Free space on the file system that holds `folder`, or will hold it, in GiB."""
    return free_bytes(folder) / 2**30


def resources_gate(free: float, thresholds: ResourcesGate) -> GateResult:
    """Check the free disk space, in GiB."""
    advice = "free some disk space, or put the workspace on another disk with --workspace"
    return GateResult("resources", (above("free disk, GiB", round(free, 2), thresholds.min_free_gb, advice),))


def read_git(project: Path) -> GitState:
    """Ask git for the commit and for changed files; outside a repository, or without git, the commit is None."""
    commit = _git(project, "rev-parse", "HEAD")
    status = _git(project, "status", "--porcelain") if commit else ""
    return GitState(commit or None, None if status is None else tuple(status.splitlines()))


def git_gate(state: GitState, thresholds: GitGate) -> GateResult:
    """Check whether a commit names the code."""
    if state.changed is None:
        return GateResult("git", error="git knows the commit but could not list changed files; run `git status`")
    checks = [info("commit", state.commit), info("changed files", len(state.changed))]
    if thresholds.require_commit:
        advice = "run from a git checkout, so that the ticket can name the code"
        checks.append(equal("commit known", state.commit is not None, True, advice))
    if thresholds.require_clean:
        advice = "commit or stash the files listed in reports/rc1/git_status.txt"
        checks.append(equal("uncommitted files", len(state.changed), 0, advice))
    demands_nothing = not (thresholds.require_commit or thresholds.require_clean)
    return GateResult(
        "git",
        tuple(checks),
        offenders=tuple({"path": line, "reason": "changed"} for line in state.changed if thresholds.require_clean),
        waiver="gates.git demands nothing in this configuration" if demands_nothing else "",
    )


def _git(project: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(project), *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip("\n")
