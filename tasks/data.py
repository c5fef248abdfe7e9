"""The data stages: shadow set and pool, metrics, balanced pool. Their manifests decide what is built.

Prefect's cache is not used, since manifests also detect files that were altered or whose writing was interrupted.
"""

from __future__ import annotations

from typing import Any

from prefect.logging import get_run_logger

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.difficulty.steps import write_report
from rc1_lib.pool.build import Progress
from rc1_lib.pool.derived import PARTS
from rc1_lib.pool.diversity_report import write_pack_report
from rc1_lib.pool.seed import build_seed
from rc1_lib.provenance.derived import Artifact, Build, needs_build
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.artifacts import FileState, read_manifest
from tasks.endings import REFUSED, outcome, refusable, retried

Made = dict[str, Any]
"""`{file, path, sha256, rows, state, built}`: `state` is the earlier state, `rows` None without a valid manifest."""


def prepare(run: Run, build: Build) -> None:
    """Build what is missing: shadow set and pool, metrics, balanced pool.

    Raises:
        RC1Error: when the sources cannot be read.
    """
    run.write_effective_config()
    outcome(seed(run, build, return_state=True))
    for stage in (metrics, balanced):
        state = stage(run, build, return_state=True)
        if state.name == REFUSED:
            # The gates report a pool that cannot be measured: each gate that reads it ends with an error.
            get_run_logger().warning("%s", state.message)
        else:
            outcome(state)


@retried(name="seed", task_run_name="shadow set and pool")
@refusable
def seed(run: Run, build: Build) -> list[Made]:
    """Write the shadow set and the seed pool if necessary."""
    report_progress("shadow set and pool", 0, 1)
    states = {part: artifact.state(run) for part, artifact in PARTS.items()}
    parts = [part for part, state in states.items() if needs_build(state, build)]
    if parts:
        build_seed(run, parts, _log_tenths())
    else:
        report_progress(
            "shadow set and pool", 1, 1, "kept: " + ", ".join(sorted({state.value for state in states.values()}))
        )
    if build != "never":
        write_pack_report(run)
    return [_made(run, PARTS[part], state, part in parts) for part, state in states.items()]


@retried(name="metrics", task_run_name="difficulty metrics")
@refusable
def metrics(run: Run, build: Build) -> list[Made]:
    """Measure the difficulty of the pool's rows if necessary."""
    return [_once("difficulty metrics", run, METRICS, build)]


@retried(name="balanced", task_run_name="balanced pool")
@refusable
def balanced(run: Run, build: Build) -> list[Made]:
    """Draw the balanced pool if necessary."""
    made = _once("balanced pool", run, BALANCED, build)
    if made["built"]:
        write_report(run)
    return [made]


def _once(stage: str, run: Run, artifact: Artifact, build: Build) -> Made:
    state = artifact.state(run)
    due = needs_build(state, build)
    report_progress(stage, 0, 1)
    if due:
        artifact.build(run)
    report_progress(stage, 1, 1, "built" if due else f"kept: {state.value}")
    return _made(run, artifact, state, due)


def _made(run: Run, artifact: Artifact, state: FileState, built: bool) -> Made:
    path = run.workspace.name(artifact.path(run))
    there = artifact.path(run).exists()
    sha256 = artifact.sha256(run) if there else None
    manifest = read_manifest(run.workspace, path) or {}
    rows = manifest.get("rows") if there and manifest.get("sha256") == sha256 else None
    get_run_logger().info("%s: found %s, %s; rows: %s", path, state.value, "built" if built else "kept", rows)
    return {"file": artifact.name, "path": path, "sha256": sha256, "rows": rows, "state": state.value, "built": built}


def _log_tenths() -> Progress:
    """Return a progress callback that logs once per tenth of the pool."""
    logger = get_run_logger()
    shown = 0

    def log(done: int, total: int) -> None:
        nonlocal shown
        report_progress("shadow set and pool", done, total)
        tenth = 10 * done // max(total, 1)
        if tenth > shown:
            shown = tenth
            logger.info("%d of %d rows written", done, total)

    return log
