"""Apply damage to a copy of a built workspace, and evaluate every gate that reads files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.pool.derived import POOL, SAMPLE_MANIFEST, SHADOW
from rc1_lib.pool.seed import build_seed
from rc1_lib.provenance.derived import Artifact
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.vouched import DATA
from rc1_lib.workspace.artifacts import Workspace, read_json, read_manifest, recorded_write, write_json
from tests.gates.damages import OTHER_FILE, Damage, Rows

GATES = (
    "integrity", "shadow_set", "mix", "length", "diversity", "duplicates", "leakage", "consistency", "missing_piece",
    "difficulty",
)  # fmt: skip
"""The gates that read the contents of shadow set, rollouts, pool, metrics and balanced pool."""
SIZE = (400, 60)
"""Rows and shadow rows of the workspace that docs/experiments/damage-table.md was measured on."""

_BY_NAME = {artifact.name: artifact for artifact in DATA}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The gates' verdicts on one kind of damage.

    Attributes:
        failed: the gates that did not pass (failed or error) after every manifest was rewritten to match the damage.
        noticed: whether `integrity` failed before that, when only the file had changed.
    """

    failed: dict[str, Status]
    noticed: bool


def build_small(root: Path, rows: int, shadow: int) -> Run:
    """Build a workspace with every file that the gates read."""
    # A seed whose few easy rows share enough with their evidence, so that damage to others does not fail `difficulty`.
    sizes = [f"pool.n={rows}", f"shadow.n={shadow}", "ablation.takes=2", "pool.workers=1", "pool.seed=3"]
    run = open_run(workspace=root, overrides=sizes)
    build_seed(run)
    write_metrics(run)
    write_balanced(run)
    return run


def failing_gates(run: Run) -> dict[str, Status]:
    """Evaluate `GATES` and return those that do not pass."""
    evidence = Evidence(run)
    found = {name: evaluate(name, evidence, 1).status for name in GATES}
    return {name: status for name, status in found.items() if status is not Status.PASSED}


def outcome(damage: Damage, whole: Run, root: Path) -> Outcome:
    """Apply the damage to a copy of `whole` at `root`, and evaluate the gates."""
    shutil.copytree(whole.workspace.root, root)
    run = replace(whole, workspace=Workspace(root))
    artifact = _BY_NAME[damage.file]
    rows = rows_in(artifact, run)
    damage.do(rows, rows_in(_BY_NAME[OTHER_FILE[damage.file]], run))
    data = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    artifact.path(run).write_bytes(data)
    noticed = evaluate("integrity", Evidence(run), 1).status is not Status.PASSED
    _write_as_built(artifact, run, data)
    return Outcome(failing_gates(run), noticed)


def rows_in(artifact: Artifact, run: Run) -> Rows:
    """Read the rows of a file."""
    return [orjson.loads(line) for line in artifact.path(run).read_bytes().splitlines()]


def _write_as_built(artifact: Artifact, run: Run, data: bytes) -> None:
    """Record the file as if it had been built this way, and derive its derived files again."""
    _record(artifact, run, data)
    if artifact is SHADOW:
        sample = run.workspace.path(SAMPLE_MANIFEST)
        write_json(sample, {**read_json(sample), "sha256": artifact.sha256(run)})
    elif artifact is POOL:
        try:
            write_metrics(run)
            write_balanced(run)
        except RowError:
            return  # an invalid row has no metrics: metrics and balanced pool stay those of the intact pool
    elif artifact is METRICS:
        _record(BALANCED, run, BALANCED.path(run).read_bytes())


def _record(artifact: Artifact, run: Run, data: bytes) -> None:
    manifest = {**(read_manifest(run.workspace, artifact.where(run)) or {}), "inputs": artifact.inputs(run)}
    with recorded_write(run.workspace, artifact.where(run), manifest) as stream:
        stream.write(data)
