"""Which code this is: by git in a checkout, otherwise by the installed package."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rc1_lib import __version__
from rc1_lib.provenance.code import PackageState, read_package
from rc1_lib.workspace.artifacts import INSTALLED, PROJECT_ROOT


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


def read_git(project: Path) -> GitState:
    """Ask git for the commit and for changed files; outside the project's repository, or without git, it is None."""
    try:
        _git(project, "ls-files", "--error-unmatch", "pyproject.toml")  # a repository around it may not track it
        commit = _git(project, "rev-parse", "HEAD")
    except _GitFailed as failed:
        return GitState(None, (), str(failed))
    try:
        return GitState(commit, tuple(_git(project, "status", "--porcelain", "--untracked-files=normal").splitlines()))
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
