"""Integrity: every data file is, byte for byte, the one that its manifest records."""

from __future__ import annotations

from collections.abc import Mapping

from rc1_lib.checks import equal
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.records import GateResult
from rc1_lib.vouched import DATA
from rc1_lib.workspace.artifacts import FileState

_ADVICE = {
    FileState.MISSING: "build it: rc1 preflight builds missing files",
    FileState.FOREIGN: "RC1 did not write it (no manifest): name it as --sources FILE.jsonl and build with --rebuild",
    FileState.ALTERED: "somebody changed it after RC1 wrote it: restore it, or build it again with --rebuild",
    FileState.INTERRUPTED: "RC1 was interrupted while writing it: run the step again",
    FileState.STALE: "its inputs have changed since: build it again with --rebuild",
}


def integrity_gate(states: Mapping[str, FileState], foreign_lines: int) -> GateResult:
    """Check the state of each data file, and that the balanced pool consists of the pool's own lines.

    Args:
        states: path of each data file -> its state.
        foreign_lines: lines of the balanced pool that are not, byte for byte, in the pool; -1 if unknown.
    """
    own_lines = equal(
        "balanced lines that are not the pool's", foreign_lines, 0, "run `rc1 difficulty-bucketize --rebuild`"
    )
    checks = tuple(
        equal(path, state.value, FileState.FRESH.value, _ADVICE.get(state, "")) for path, state in states.items()
    )
    return GateResult("integrity", (*checks, own_lines))


def _judge(evidence: Evidence, _: Round) -> GateResult:
    states = {evidence.label(artifact.name): artifact.state(evidence.run) for artifact in DATA}
    return integrity_gate(states, evidence.balanced_foreign_lines())


SPEC = GateSpec(
    "integrity", "are the files those that were written", tuple(artifact.name for artifact in DATA), _judge,
    reads_world=True,
)  # fmt: skip
