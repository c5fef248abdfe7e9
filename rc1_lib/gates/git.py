"""Git: the code can be named, by a commit or by the installed package."""

from __future__ import annotations

from rc1_lib.checks import equal, info
from rc1_lib.config.thresholds import GitGate
from rc1_lib.gates.spec import GateSpec
from rc1_lib.provenance.code import PackageState
from rc1_lib.provenance.git import GitState, read_code
from rc1_lib.records import GateResult


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


SPEC = GateSpec(
    "git", "which code is this", (), lambda e, _: git_gate(read_code(), e.run.config.gates.git), reads_world=True
)
