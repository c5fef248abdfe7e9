"""The machine and the code: free disk, and which code this is, by git or by the installed package."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rc1_lib import __version__
from rc1_lib.checks import above, equal, info
from rc1_lib.config.thresholds import GitGate, ResourcesGate
from rc1_lib.provenance.code import PackageState, read_package
from rc1_lib.records import GateResult
from rc1_lib.workspace.artifacts import INSTALLED, PROJECT_ROOT
from rc1_lib.workspace.folder import free_bytes


@dataclass(frozen=True, slots=True)
class GitState:
    """What git reports about the project.

    Attributes:
        commit: None outside a repository or without git.
        changed: changed and untracked paths; None if git could not list them.
        why: git's own words if it failed.
    """

    commit: str | None
    changed: tuple[str, ...] | None
    why: str = ""


def free_gb(folder: Path) -> float:
    """Return the free space, in GiB, on the file system of `folder`, which need not exist yet."""
    return free_bytes(folder) / 2**30


def resources_gate(free: float, thresholds: ResourcesGate) -> GateResult:
    """Check the free disk space, in GiB."""
    advice = "free some disk space, or put the workspace on another disk with --workspace"
    return GateResult("resources", (above("free disk, GiB", round(free, 2), thresholds.min_free_gb, advice),))


def read_git(project: Path) -> GitState:
    """Ask git for the commit and for changed files; outside a repository, or without git, the commit is None."""
    try:
        commit = _git(project, "rev-parse", "HEAD")
    except _GitFailed as failed:
        return GitState(None, (), str(failed))
    try:
        return GitState(commit, tuple(_git(project, "status", "--porcelain").splitlines()))
    except _GitFailed as failed:
        return GitState(commit, None, str(failed))


def read_code() -> GitState | PackageState:
    """Return the state of the git checkout, or of the installed package if there is no checkout."""
    return read_package() if INSTALLED else read_git(PROJECT_ROOT)


def code_named(state: GitState | PackageState) -> dict[str, object]:
    """Return the entry for the code in reports and tickets: the commit, or the installed package."""
    if isinstance(state, GitState):
        return {"commit": state.commit}
    return {"commit": None, "package": state.facts()}


@cache
def code_words() -> str:
    """Return the code of this process in words: version, and commit or the installed package's fingerprint."""
    state, named = read_code(), f"rc1 {__version__}"
    if isinstance(state, PackageState):
        return f"{named}, SHA-256 {state.sha256[:12]}"
    changed = ", with changed files" if state.changed else ""
    return f"{named}, commit {state.commit[:12]}{changed}" if state.commit else named


def git_gate(state: GitState | PackageState, thresholds: GitGate) -> GateResult:
    """Check that the code can be identified by a commit, or by the installed package."""
    if state.changed is None:
        return GateResult("git", error=f"git knows the commit but could not list changed files: {state.why}")
    if isinstance(state, GitState):
        name, known, unclean = state.commit, "commit known", "uncommitted files"
        checks = [info("commit", name)]
        get_known = "run from a git checkout, so that the ticket can identify the code"
        if state.why:
            get_known += f"; git says: {state.why}"
        clean_up = "commit or stash the files listed in reports/rc1/git_status.txt"
    else:
        name, known, unclean = state.version, "package known, instead of a commit", "files not as installed"
        checks = [info("no git checkout; the ticket names", f"rc1 {name or '?'}, SHA-256 {state.sha256[:12]}")]
        get_known = "install RC1 with pip, which records its files, or run from a git checkout"
        clean_up = "install the package again: reports/rc1/git_status.txt lists the files"
    checks.append(info("changed files", len(state.changed)))
    if thresholds.require_commit:
        checks.append(equal(known, name is not None, True, get_known))
    if thresholds.require_clean:
        checks.append(equal(unclean, len(state.changed), 0, clean_up))
    demands_nothing = not (thresholds.require_commit or thresholds.require_clean)
    return GateResult(
        "git",
        tuple(checks),
        offenders=tuple({"path": line, "reason": "changed"} for line in state.changed if thresholds.require_clean),
        waiver="gates.git demands nothing in this configuration" if demands_nothing else "",
    )


class _GitFailed(Exception):
    """git did not answer; says why."""


def _git(project: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(project), *arguments], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise _GitFailed(str(error)) from None
    if done.returncode:  # a checkout of another user, for example: git names the command that allows it
        raise _GitFailed(" ".join(done.stderr.split()) or f"exit code {done.returncode}")
    return done.stdout.strip("\n")
