"""Resources: the disk has room for what a run writes."""

from __future__ import annotations

from rc1_lib.checks import above
from rc1_lib.config.thresholds import ResourcesGate
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.records import GateResult
from rc1_lib.workspace.folder import free_bytes


def resources_gate(free: float, thresholds: ResourcesGate) -> GateResult:
    """Check the free disk space, in GiB."""
    advice = "free some disk space, or put the workspace on another disk with --workspace"
    return GateResult("resources", (above("free disk, GiB", round(free, 2), thresholds.min_free_gb, advice),))


def _judge(evidence: Evidence, _: Round) -> GateResult:
    run = evidence.run
    return resources_gate(free_bytes(run.workspace.root) / 2**30, run.config.gates.resources)


SPEC = GateSpec("resources", "is there room on the disk", (), _judge, reads_world=True)
