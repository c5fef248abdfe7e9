"""`difficulty-metrics`, `difficulty-bucketize` and `validate-difficulty`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rc1_lib.cli import tables
from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.following import again, flagged, then
from rc1_lib.cli.options import ByTask, Rebuild, Seed, by_task, overrides, shares
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import ConfigError
from rc1_lib.records import BUCKETS

_REPORT = "reports/rc1/difficulty_report.json"
_DRAWN = ("len_tokens", "turns", "tool_hops", "clue_overlap")


def difficulty_metrics(
    session: Session,
    pool: Annotated[Path | None, typer.Option("--in", help="The pool to measure (pool.path).")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The metrics, below the workspace (difficulty.metrics_path).")
    ] = None,
    rebuild: Rebuild = False,
) -> int:
    """Measure how difficult every row of the pool is, and sort it into easy, medium or hard."""
    from rc1_lib.difficulty.derived import METRICS
    from rc1_lib.difficulty.steps import read_metrics, write_metrics
    from rc1_lib.workspace.file_hashes import sha256_file

    flags = overrides({"difficulty.metrics_path": session.inside("--out", out)})
    run = session.open(flags, reading={"pool.path": session.given(pool)})
    path = run.config.difficulty.metrics_path
    with session.progress("measuring"):
        due = METRICS.to_write(run, rebuild)
        metrics = write_metrics(run) if due else read_metrics(run)
    found = {bucket: int((metrics["bucket"] == bucket).sum()) for bucket in BUCKETS}
    target = run.workspace.path(path)
    session.show(f"{target}, {'written' if due else 'unchanged'}")
    words = f"{metrics.height} rows measured: {tables.counts(found)}"
    show_ending(session, Ending("done", words, following=then(session, "difficulty-bucketize")))
    session.document(
        {"path": path, "sha256": sha256_file(target), "rows": metrics.height, "buckets": found, "written_now": due}
    )
    return 0


def difficulty_bucketize(
    session: Session,
    metrics: Annotated[Path | None, typer.Option(help="The metrics (difficulty.metrics_path).")] = None,
    target: Annotated[str | None, typer.Option(help='"easy:0.25,medium:0.45,hard:0.30" (difficulty.target).')] = None,
    tasks: ByTask = None,
    out: Annotated[Path | None, typer.Option(help="The balanced pool, below the workspace.")] = None,
    pool: Annotated[Path | None, typer.Option("--pool", help="The pool that was measured (pool.path).")] = None,
    seed: Seed = None,
    rebuild: Rebuild = False,
) -> int:
    """Choose rows of the pool so that easy, medium and hard have their target shares, in every task."""
    from rc1_lib.difficulty.derived import BALANCED
    from rc1_lib.difficulty.steps import write_balanced
    from rc1_lib.workspace.artifacts import read_manifest

    run = session.open(
        overrides(
            {
                "difficulty.target": shares("--target", target, BUCKETS),
                "difficulty.balanced_path": session.inside("--out", out),
                "pool.seed": seed,
            }
        ),
        reading={"difficulty.metrics_path": session.given(metrics), "pool.path": session.given(pool)},
    )
    mix = tuple(run.config.datasets)
    if set(by_task(tasks, run.config.datasets)) != set(mix):
        raise ConfigError(
            f"--by-task {tasks}: every task of the mix is balanced by itself, so name all of {','.join(mix)}"
        )
    path = run.config.difficulty.balanced_path
    with session.progress("balancing"):
        due = BALANCED.to_write(run, rebuild)
        if due:
            write_balanced(run)
    manifest: dict[str, Any] = read_manifest(run.workspace, path) or {}
    done = "written" if due else "unchanged: it is already what this configuration makes"
    session.show(f"{run.workspace.path(path)}, {done}")
    words = f"{manifest['rows']} of {manifest['of']} rows chosen"
    show_ending(session, Ending("done", words, following=then(session, "validate-difficulty")))
    session.document({**manifest, "written_now": due})
    return 0


def validate_difficulty(
    session: Session,
    metrics: Annotated[Path | None, typer.Option(help="The metrics (difficulty.metrics_path).")] = None,
    balanced: Annotated[Path | None, typer.Option(help="The balanced pool (difficulty.balanced_path).")] = None,
    min_hard_pct: Annotated[float | None, typer.Option(help="Lowest share of hard rows, 0 to 1.")] = None,
    max_easy_pct: Annotated[float | None, typer.Option(help="Highest share of easy rows, 0 to 1.")] = None,
    len_max: Annotated[int | None, typer.Option(help="Longest row, in tokens.")] = None,
    turns_max: Annotated[int | None, typer.Option(help="Most turns.")] = None,
    tool_hops_max: Annotated[int | None, typer.Option(help="Most tool calls.")] = None,
    clue_overlap_max_easy: Annotated[
        float | None, typer.Option(help="Highest median overlap of the easy rows.")
    ] = None,
    clue_overlap_min_hard: Annotated[float | None, typer.Option(help="Lowest median overlap of the hard rows.")] = None,
    tasks: ByTask = None,
    out: Annotated[Path | None, typer.Option(help=f"The report. Default: {_REPORT}.")] = None,
) -> int:
    """Check the balanced pool's difficulty and describe it: counts, quantiles, histograms."""
    from rc1_lib.difficulty.report import difficulty_report
    from rc1_lib.evidence import Evidence

    report_path = session.report("--out", out, ("gates", "counts", "histograms")) or _REPORT
    run = session.open(
        overrides(
            {
                "gates.difficulty.min_hard_pct": min_hard_pct,
                "gates.difficulty.max_easy_pct": max_easy_pct,
                "gates.difficulty.len_max": len_max,
                "gates.difficulty.turns_max": turns_max,
                "gates.difficulty.tool_hops_max": tool_hops_max,
                "gates.difficulty.clue_overlap_max_easy": clue_overlap_max_easy,
                "gates.difficulty.clue_overlap_min_hard": clue_overlap_min_hard,
            }
        ),
        reading={
            "difficulty.metrics_path": session.given(metrics),
            "difficulty.balanced_path": session.given(balanced),
        },
    )
    judged = by_task(tasks, run.config.datasets)
    evidence = Evidence(run)
    described = difficulty_report(evidence.metrics(), evidence.rows("balanced")["id"])
    results = judge(session, run, ("difficulty",), judged)
    session.show(tables.buckets_table(described["counts"]), tables.features_table(described["features"]))
    session.show(*(tables.histogram(name, described["histograms"][name]) for name in _DRAWN))
    return conclude(
        session, run, "difficulty", results, report_path, described,
        after_pass=then(session, "calibrate"),
        after_fail=again(session, "validate-difficulty", *flagged({"--metrics": metrics, "--balanced": balanced})),
    )  # fmt: skip
