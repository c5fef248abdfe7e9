"""Write a run's shadow set, the rollouts of its prompts and the seed pool."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from rc1_lib.difficulty.features import cache_metrics
from rc1_lib.pool.build import BuildReport, Plans, Progress, leaking_questions, plan, write_rows
from rc1_lib.pool.derived import PARTS, SAMPLE_MANIFEST, Part
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.takes import TakesReport, write_takes
from rc1_lib.pool.templates import Pack, load_pack
from rc1_lib.records import Row
from rc1_lib.rows.lines import seen
from rc1_lib.run import Run
from rc1_lib.runtime.batches import gc_paused
from rc1_lib.sources import held_out_elsewhere, load_questions
from rc1_lib.workspace.artifacts import read_manifest, recorded_write, write_json


def build_seed(
    run: Run, parts: Sequence[Part] = ("shadow", "takes", "pool"), progress: Progress | None = None
) -> dict[str, Any]:
    """Build and write the shadow set, the rollouts of its prompts and the pool, or some of these.

    Args:
        run: configuration and workspace.
        parts: what to write. All are planned together, so that the pool shares no question with the others.
        progress: called with (rows written, rows planned) of the pool.

    Returns:
        The manifest written for each part.

    Raises:
        SourceError: when questions are missing or too few.
        TemplateError: when the pack is invalid.
    """
    with gc_paused():
        return _build(run, parts, progress)


def build_due(run: Run, *, rebuild: bool = False, progress: Progress | None = None) -> tuple[Part, ...]:
    """Build the parts that do not match this configuration, and return their names.

    Args:
        rebuild: build all parts, and overwrite files that somebody altered or supplied.
        progress: called with (rows written, rows planned) of the pool.

    Raises:
        RC1Error: when RC1 did not write one of the files and `rebuild` is False; also whatever `build_seed` raises.
    """
    due = tuple(part for part, artifact in PARTS.items() if artifact.to_write(run, rebuild))
    if due:
        build_seed(run, due, progress)
    return due


def drawn(run: Run) -> tuple[list[Row], list[Row]]:
    """Return the rows of the shadow set and the takes that `build_seed` would write, without writing them.

    Raises:
        SourceError: when questions are missing or too few.
        TemplateError: when the pack is invalid.
    """
    pack = load_pack(run.workspace.find(run.config.pool.templates_dir))
    shadow = _planned(run, ("shadow",), pack)[0].shadow
    with gc_paused():
        lines = list(write_rows(shadow, run.config, pack, BuildReport()))
        return [orjson.loads(line) for line in lines], [
            orjson.loads(line) for line in write_takes(shadow, run.config, pack, TakesReport())
        ]


def _build(run: Run, parts: Sequence[Part], progress: Progress | None) -> dict[str, Any]:
    pack = load_pack(run.workspace.find(run.config.pool.templates_dir))
    # Hashed before anything is read: if an input changes meanwhile, these files were not made from the new one.
    inputs = {part: artifact.inputs(run) for part, artifact in PARTS.items()}
    plans, skipped, lines = _planned(run, parts, pack, progress)
    written: dict[str, Any] = {}
    if "shadow" in parts:
        report = BuildReport()
        shadow = write_rows(plans.shadow, run.config, pack, report)
        written["shadow"] = _write(run, "shadow", shadow, report, inputs["shadow"], {})
        _write_sample_manifest(run, plans.shadow, written["shadow"])
    if "takes" in parts:
        written["takes"] = _write_takes(run, plans.shadow, pack, inputs["takes"])
    if "pool" in parts:
        written["pool"] = _write(run, "pool", lines, plans.report, inputs["pool"], skipped)
    return written


def _planned(
    run: Run, parts: Sequence[Part], pack: Pack, progress: Progress | None = None
) -> tuple[Plans, dict[str, dict[str, int]], Iterable[bytes]]:
    """Return the plans, how many records of the source were skipped for which reason, and the pool's lines."""
    config, pool = run.config, "pool" in parts
    held_elsewhere = held_out_elsewhere(config, run.workspace)
    questions, skipped = load_questions(config, run.workspace)
    leaking: set[str] = set()
    while True:
        plans = plan(config, questions, pool=pool, held_elsewhere=held_elsewhere, leaking=leaking)
        lines = write_rows(plans.pool, config, pack, plans.report, progress)
        if all(row.question.source == "embedded" for row in plans.pool):  # its questions share no invented name
            return plans, skipped, lines
        rows, shadow = list(lines), write_rows(plans.shadow, config, pack, BuildReport())
        found = leaking_questions(rows, shadow, plans.pool, config.gates.leakage, pack)
        if not found:
            return plans, skipped, rows
        leaking |= found


def _write(
    run: Run,
    part: Part,
    lines: Iterable[bytes],
    report: BuildReport,
    inputs: dict[str, str],
    skipped: dict[str, dict[str, int]],
) -> dict[str, Any]:
    relative = PARTS[part].where(run)
    manifest: dict[str, Any] = {"kind": part, "inputs": inputs, "skipped_records": skipped}
    digest = hashlib.sha256()
    with recorded_write(run.workspace, relative, manifest) as stream:
        stream.writelines(seen(lines, digest.update))
        manifest["report"] = report.to_dict()
        manifest["rows"] = sum(report.rows.values())
    if report.measured is not None:
        cache_metrics(digest.hexdigest(), report.measured)
    return _recorded(run, relative)


def _write_takes(run: Run, planned: Sequence[PlannedRow], pack: Pack, inputs: dict[str, str]) -> dict[str, Any]:
    relative = PARTS["takes"].where(run)
    manifest: dict[str, Any] = {"kind": "takes", "inputs": inputs}
    report = TakesReport()
    with recorded_write(run.workspace, relative, manifest) as stream:
        stream.writelines(write_takes(planned, run.config, pack, report))
        manifest["report"] = report.to_dict()
        manifest["rows"] = sum(report.rows.values())
    return _recorded(run, relative)


def _recorded(run: Run, relative: str) -> dict[str, Any]:
    recorded = read_manifest(run.workspace, relative)
    assert recorded is not None
    return recorded


def _write_sample_manifest(run: Run, planned: Sequence[PlannedRow], manifest: dict[str, Any]) -> None:
    """Write which question is in which shadow row, so that anybody can draw the same sample again."""
    strata = Counter(row.question.task for row in planned)
    write_json(
        run.workspace.path(SAMPLE_MANIFEST),
        {
            "path": manifest["path"],
            "sha256": manifest["sha256"],
            "n": len(planned),
            "seed": run.config.shadow.seed,
            "stratified": run.config.shadow.stratify,
            "strata": dict(strata),
            "rows": [{"id": row.id, "task": row.question.task, "source_id": row.question.id} for row in planned],
        },
    )
