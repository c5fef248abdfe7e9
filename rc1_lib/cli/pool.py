"""The pool and its difficulty: `build-pool`, `validate-pool`, `diversity-report`, and the `difficulty` commands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.check_words import figure
from rc1_lib.cli import tables
from rc1_lib.cli.endings import Ending, again, end, flagged, then
from rc1_lib.cli.options import ByTask, Metrics, Mix, Rebuild, Seed, TemplatesDir, by_task, shares
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import ConfigError, RC1Error, TemplateError
from rc1_lib.records import BUCKETS, GateResult
from rc1_lib.workspace.artifacts import read_manifest, write_json

if TYPE_CHECKING:
    from rc1_lib.evidence import Evidence
    from rc1_lib.run import Run

_SHOWN = {"shadow": "shadow set", "takes": "its rollouts", "pool": "pool"}
_GATES = ("mix", "length", "diversity", "duplicates", "leakage")
_OF_ROWS = ("consistency", "missing_piece")
_REPORT = "reports/rc1/validate_pool.json"
_DIVERSITY = "reports/diversity_report.json"
_DIFFICULTY = "reports/rc1/difficulty_report.json"
_UNCHANGED = "unchanged: it is already what this configuration makes"
_BAR = 24
_DRAWN = ("len_tokens", "turns", "tool_hops", "clue_overlap")


def build_pool(
    session: Session,
    out: Annotated[Path | None, typer.Option(help="Where to write the pool, below the workspace (pool.path).")] = None,
    n: Annotated[int | None, typer.Option(help="Number of rows (pool.n).")] = None,
    mix: Mix = None,
    max_turns: Annotated[
        int | None, typer.Option(help="Maximum assistant turns of a dialogue (pool.max_turns).")
    ] = None,
    clarify_rate: Annotated[
        float | None, typer.Option(help="Share of dialogues that ask the user (pool.clarify_rate).")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(help='Tools of the assistant, for example "wiki,calc" (pool.tools).')
    ] = None,
    templates_dir: TemplatesDir = None,
    shadow: Annotated[
        Path | None,
        typer.Option(
            help="Also leave out the questions of this shadow set, in addition to the run's own (pool.hold_out)."
        ),
    ] = None,
    seed: Seed = None,
    workers: Annotated[int | None, typer.Option(help="Processes that write rows (pool.workers).")] = None,
    rebuild: Rebuild = False,
) -> int:
    """Build the training pool and the shadow set from a source of questions and a template pack."""
    run = session.open(
        {
            "pool.path": session.inside("--out", out),
            "pool.n": n,
            "datasets": shares("--mix", mix),
            "pool.max_turns": max_turns,
            "pool.clarify_rate": clarify_rate,
            "pool.tools": None if tools is None else [name.strip() for name in tools.split(",")],
            "pool.templates_dir": session.given(templates_dir),
            "pool.hold_out": session.given(shadow),
            "pool.seed": seed,
            "pool.workers": workers,
        }
    )
    from rc1_lib.pool.derived import PARTS
    from rc1_lib.pool.seed import build_due
    from rc1_lib.rows.playable import about_unplayable

    paths = {part: artifact.where(run) for part, artifact in PARTS.items()}
    with session.progress("building the pool") as report:
        wanted = build_due(run, rebuild=rebuild, progress=report)
    manifests: dict[str, Any] = {part: read_manifest(run.workspace, path) for part, path in paths.items()}
    for part, path in paths.items():
        done = "written" if part in wanted else _UNCHANGED
        session.show(f"{_SHOWN[part]}: {manifests[part]['rows']} rows, {run.workspace.path(path)}, {done}")
        session.show(f"    sha256 {manifests[part]['sha256']}")
    body = manifests["pool"]["report"]
    session.show(
        f"rows by task: {tables.counts(body['rows'])}",
        f"questions posed a second time: {body['second_uses_of_a_question']}",
        *filter(None, [about_unplayable(body.get("rows_without_user_replies", 0))]),
        *(f"left out: {why}: {count}" for why, count in body["dropped_questions"].items() if count),
        *(f"posed complete: {why}: {count}" for why, count in body["questions_that_withhold_nothing"].items()),
    )
    for task, reasons in manifests["pool"]["skipped_records"].items():
        session.show(*(f"skipped records of {task}: {why}: {count}" for why, count in reasons.items()))
    words = f"pool of {manifests['pool']['rows']} rows, shadow set of {manifests['shadow']['rows']}"
    document = {part: {**manifests[part], "written_now": part in wanted} for part in paths}
    return end(session, Ending("done", words), document)


def validate_pool(
    session: Session,
    pool: Annotated[Path | None, typer.Argument(help="The pool to check. Default: pool.path.")] = None,
    min_distinct2: Annotated[float | None, typer.Option(help="Minimum distinct-2, averaged over windows.")] = None,
    kl3_min: Annotated[float | None, typer.Option(help="Minimum 3-gram KL from the reference pack.")] = None,
    roles_min: Annotated[int | None, typer.Option(help="Minimum number of roles.")] = None,
    styles_min: Annotated[int | None, typer.Option(help="Minimum number of styles.")] = None,
    max_dup_pct: Annotated[float | None, typer.Option(help="Maximum share of duplicate rows, in percent.")] = None,
    max_len: Annotated[int | None, typer.Option(help="Maximum length of a row, in tokens.")] = None,
    min_len: Annotated[int | None, typer.Option(help="Minimum length of a row, in tokens.")] = None,
    leak_check: Annotated[Path | None, typer.Option(help="The shadow set. Default: shadow.path.")] = None,
    leak_ngram: Annotated[int | None, typer.Option(help="Words per n-gram in the leak check.")] = None,
    leak_sim: Annotated[float | None, typer.Option(help="Maximum similarity to a shadow question.")] = None,
    tasks: ByTask = None,
    mix: Mix = None,
    seed: Seed = None,
) -> int:
    """Check a pool: task mix, length, diversity, duplicates, leakage, consistency, missing pieces."""
    from rc1_lib.evidence import Evidence
    from rc1_lib.rows.playable import about_unplayable, unplayable

    run = session.open(
        {
            "datasets": shares("--mix", mix),
            "pool.seed": seed,
            "gates.diversity.min_distinct2": min_distinct2,
            "gates.diversity.kl3_min": kl3_min,
            "gates.diversity.roles_min": roles_min,
            "gates.diversity.styles_min": styles_min,
            "gates.duplicates.max_dup_pct": max_dup_pct,
            "gates.length.max_len": max_len,
            "gates.length.min_len": min_len,
            "gates.leakage.ngram": leak_ngram,
            "gates.leakage.max_similarity": leak_sim,
        },
        reading={"pool.path": session.given(pool), "shadow.path": session.given(leak_check)},
        remembered=True,
    )
    judged = by_task(tasks, run.config.datasets)
    evidence = Evidence(run)
    for name in ("pool", "shadow"):
        evidence.rows(name)  # report a missing or damaged file once, not once per gate
    session.show(*filter(None, [about_unplayable(unplayable(evidence.rows("pool")))]))
    results = [*judge(session, run, _GATES, judged), *(_without_takes(evidence, name) for name in _OF_ROWS)]
    read = {name: {"path": evidence.label(name), "sha256": evidence.sha256(name)} for name in ("pool", "shadow")}
    if pool is None:  # the fix is in its source or its templates, so judging the same file again would fail again
        after_fail = then(session, "build-pool", when="once that is fixed; then rc1 validate-pool again")
    else:
        after_fail = again(session, "validate-pool", *flagged({"": pool, "--leak-check": leak_check}))
    return conclude(
        session, run, f"pool {read['pool']['path']}", results, _REPORT, {"files": read, "by_task": judged},
        after_fail=after_fail,
    )  # fmt: skip


def _without_takes(evidence: Evidence, name: str) -> GateResult:
    """Evaluate a gate as in a round, but without the takes, which a pool from elsewhere lacks."""
    from rc1_lib.gates import consistency, missing_piece

    if waiver := evidence.run.config.gates.waivers.get(name, ""):
        return GateResult(name, waiver=waiver)
    try:
        judge_files = {"consistency": consistency.judge_files, "missing_piece": missing_piece.judge_files}[name]
        return judge_files(evidence, ("pool", "shadow"))
    except RC1Error as error:
        return GateResult(name, error=str(error))


def report_diversity(
    session: Session,
    pool: Annotated[
        Path | None, typer.Argument(help="Measure the rows of this pool. Default: the texts of the template pack.")
    ] = None,
    templates_dir: TemplatesDir = None,
    reference_dir: Annotated[
        Path | None, typer.Option(help="Pack to measure the divergence from (pool.reference_templates_dir).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=f"Write the report to this file. Default: {_DIVERSITY}.")] = None,
    seed: Seed = None,
) -> int:
    """Measure how varied the wording is: distinct-1/2, type-token ratio, 3-gram KL, Zipf slope, coverage."""
    target = session.report("--out", out, ("measured",)) or _DIVERSITY
    run = session.open(
        {
            "pool.templates_dir": session.given(templates_dir),
            "pool.reference_templates_dir": session.given(reference_dir),
            "pool.seed": seed,
        },
        reading={"pool.path": session.given(pool)},
    )
    report = _diversity(run, of_rows=pool is not None)
    write_json(run.workspace.path(target), report)
    session.show(*(f"{name}: {figure(value)}" for name, value in report.items()))
    return end(session, Ending("done", f"diversity of {report['measured']}", report=run.workspace.path(target)), report)


def _diversity(run: Run, of_rows: bool) -> dict[str, Any]:
    from rc1_lib.evidence import Evidence
    from rc1_lib.pool.diversity import KL_ROWS
    from rc1_lib.pool.diversity_report import diversity_report, pack_report
    from rc1_lib.pool.rewording import reworded
    from rc1_lib.pool.templates import load_pack
    from rc1_lib.rows.frame import with_texts

    evidence = Evidence(run)
    pack, reference = load_pack(evidence.path("templates")), load_pack(evidence.path("reference_templates"))
    if pack.sha256 == reference.sha256:
        place = evidence.path("templates")
        raise TemplateError(f"{place}: is the reference pack itself; name another pack with --templates-dir")
    if not of_rows:
        return pack_report(run)
    rows = with_texts(evidence.rows("pool"))
    rows = rows.sample(min(rows.height, KL_ROWS), seed=run.config.pool.seed, shuffle=True)
    measured = diversity_report(rows["written"], pack, reworded(rows, reference), seed=run.config.pool.seed)
    used = {f"{name}s_used": sorted(rows[name].unique()) for name in ("role", "style")}
    return {"measured": evidence.label("pool"), **measured, **used}


def difficulty_metrics(
    session: Session,
    pool: Annotated[Path | None, typer.Option("--in", help="The pool to measure (pool.path).")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the metrics, below the workspace (difficulty.metrics_path).")
    ] = None,
    rebuild: Rebuild = False,
) -> int:
    """Measure how difficult each row of the pool is, and label it easy, medium or hard."""
    from rc1_lib.difficulty.derived import METRICS
    from rc1_lib.difficulty.steps import read_metrics, write_metrics
    from rc1_lib.workspace.file_hashes import sha256_file

    written = {"difficulty.metrics_path": session.inside("--out", out)}
    run = session.open(written, reading={"pool.path": session.given(pool)})
    path = run.config.difficulty.metrics_path
    with session.progress("measuring"):
        due = METRICS.to_write(run, rebuild)
        metrics = write_metrics(run) if due else read_metrics(run)
    found = {bucket: int((metrics["bucket"] == bucket).sum()) for bucket in BUCKETS}
    target = run.workspace.path(path)
    session.show(f"{target}, {'written' if due else 'unchanged'}")
    words = f"{metrics.height} rows measured: {tables.counts(found)}"
    counted = {"rows": metrics.height, "buckets": found, "written_now": due}
    return end(session, Ending("done", words), {"path": path, "sha256": sha256_file(target), **counted})


def difficulty_bucketize(
    session: Session,
    metrics: Metrics = None,
    target: Annotated[
        str | None,
        typer.Option(help='Shares, for example "easy:0.25,medium:0.45,hard:0.30" (difficulty.target).'),
    ] = None,
    tasks: ByTask = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the balanced pool, below the workspace.")] = None,
    pool: Annotated[Path | None, typer.Option("--pool", help="The pool that was measured (pool.path).")] = None,
    seed: Seed = None,
    rebuild: Rebuild = False,
) -> int:
    """Choose rows of the pool so that easy, medium and hard have their target shares, in every task."""
    from rc1_lib.difficulty.derived import BALANCED
    from rc1_lib.difficulty.steps import write_balanced

    run = session.open(
        {
            "difficulty.target": shares("--target", target),
            "difficulty.balanced_path": session.inside("--out", out),
            "pool.seed": seed,
        },
        reading={"difficulty.metrics_path": session.given(metrics), "pool.path": session.given(pool)},
    )
    mix = tuple(run.config.datasets)
    if set(by_task(tasks, run.config.datasets)) != set(mix):
        raise ConfigError(
            f"--by-task {tasks}: every task of the mix is balanced separately, so name all of {','.join(mix)}"
        )
    path = run.config.difficulty.balanced_path
    with session.progress("balancing"):
        due = BALANCED.to_write(run, rebuild)
        if due:
            write_balanced(run)
    manifest: dict[str, Any] = read_manifest(run.workspace, path) or {}
    session.show(f"{run.workspace.path(path)}, {'written' if due else _UNCHANGED}")
    words = f"{manifest['rows']} of {manifest['of']} rows chosen"
    return end(session, Ending("done", words), {**manifest, "written_now": due})


def validate_difficulty(
    session: Session,
    metrics: Metrics = None,
    balanced: Annotated[Path | None, typer.Option(help="The balanced pool (difficulty.balanced_path).")] = None,
    min_hard_pct: Annotated[float | None, typer.Option(help="Minimum share of hard rows, 0 to 1.")] = None,
    max_easy_pct: Annotated[float | None, typer.Option(help="Maximum share of easy rows, 0 to 1.")] = None,
    len_max: Annotated[int | None, typer.Option(help="Maximum length of a row, in tokens.")] = None,
    turns_max: Annotated[int | None, typer.Option(help="Maximum number of turns.")] = None,
    tool_hops_max: Annotated[int | None, typer.Option(help="Maximum number of tool calls.")] = None,
    clue_overlap_max_easy: Annotated[
        float | None, typer.Option(help="Maximum median clue overlap of easy rows.")
    ] = None,
    clue_overlap_min_hard: Annotated[
        float | None, typer.Option(help="Minimum median clue overlap of hard rows.")
    ] = None,
    tasks: ByTask = None,
    out: Annotated[Path | None, typer.Option(help=f"Write the report to this file. Default: {_DIFFICULTY}.")] = None,
) -> int:
    """Check the balanced pool's difficulty and describe it: counts, quantiles, histograms."""
    from rc1_lib.difficulty.report import difficulty_report
    from rc1_lib.evidence import Evidence

    report_path = session.report("--out", out, ("gates", "counts", "histograms")) or _DIFFICULTY
    run = session.open(
        {
            "gates.difficulty.min_hard_pct": min_hard_pct,
            "gates.difficulty.max_easy_pct": max_easy_pct,
            "gates.difficulty.len_max": len_max,
            "gates.difficulty.turns_max": turns_max,
            "gates.difficulty.tool_hops_max": tool_hops_max,
            "gates.difficulty.clue_overlap_max_easy": clue_overlap_max_easy,
            "gates.difficulty.clue_overlap_min_hard": clue_overlap_min_hard,
        },
        reading={
            "difficulty.metrics_path": session.given(metrics),
            "difficulty.balanced_path": session.given(balanced),
        },
    )
    judged = by_task(tasks, run.config.datasets)
    evidence = Evidence(run)
    described = difficulty_report(evidence.metrics(), evidence.rows("balanced")["id"])
    results = judge(session, run, ("difficulty",), judged)
    session.show(_buckets_table(described["counts"]), _features_table(described["features"]))
    session.show(*(_histogram(name, described["histograms"][name]) for name in _DRAWN))
    return conclude(
        session, run, "difficulty", results, report_path, described,
        after_fail=again(session, "validate-difficulty", *flagged({"--metrics": metrics, "--balanced": balanced})),
    )  # fmt: skip


def _buckets_table(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Table:
    """Return the rows per task and bucket, of the pool and of the balanced pool."""
    rows = []
    for name, groups in counts.items():
        for task, found in groups.items():
            total = found["total"]
            cells = [f"{found[bucket]} ({100 * found[bucket] / total:.1f} %)" if total else "0" for bucket in BUCKETS]
            rows.append((name, task, *cells, total))
    return tables.table("rows per bucket", ("rows of", "task", *BUCKETS, "total"), rows, (*BUCKETS, "total"))


def _features_table(features: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the quantiles of every feature, of the pool and of the balanced pool."""
    rows = [
        (name, *(" / ".join(figure(one["all"][part]) for part in ("p10", "p50", "p90")) for one in pools.values()))
        for name, pools in features.items()
    ]
    return tables.table("features: p10 / p50 / p90", ("feature", "pool", "balanced"), rows)


def _histogram(name: str, drawn: Mapping[str, Sequence[float]]) -> Table:
    """Return a text histogram: one bar per bin of the pool, with the counts of both pools."""
    highest = max(drawn["pool"], default=0) or 1
    rows = [
        (figure(edge), "█" * math.ceil(_BAR * pool / highest), pool, balanced)
        for edge, pool, balanced in zip(drawn["edges"], drawn["pool"], drawn["balanced"], strict=False)
    ]
    return tables.table(name, ("from", "", "pool", "balanced"), rows, ("from", "pool", "balanced"))
