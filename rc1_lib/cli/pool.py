"""`build-pool`, `validate-pool` and `diversity-report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rc1_lib.cli import tables
from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.following import again, flagged, then
from rc1_lib.cli.options import (
    ByTask,
    Mix,
    Rebuild,
    Seed,
    TemplatesDir,
    by_task,
    names,
    overrides,
    shares,
)
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import TemplateError
from rc1_lib.task_specs import task_names

if TYPE_CHECKING:
    from rc1_lib.run import Run

_GATES = ("mix", "length", "diversity", "duplicates", "leakage")
_REPORT = "reports/rc1/validate_pool.json"
_DIVERSITY = "reports/diversity_report.json"


def build_pool(
    session: Session,
    out: Annotated[Path | None, typer.Option(help="The pool, below the workspace (pool.path).")] = None,
    n: Annotated[int | None, typer.Option(help="Rows of the pool (pool.n).")] = None,
    mix: Mix = None,
    max_turns: Annotated[int | None, typer.Option(help="Most assistant turns of a dialogue (pool.max_turns).")] = None,
    clarify_rate: Annotated[
        float | None, typer.Option(help="Share of dialogues that ask the user (pool.clarify_rate).")
    ] = None,
    tools: Annotated[str | None, typer.Option(help='Tools of the assistant, "wiki,calc" (pool.tools).')] = None,
    templates_dir: TemplatesDir = None,
    shadow: Annotated[
        Path | None,
        typer.Option(help="Leave out the questions of this shadow set too, besides the run's own (pool.hold_out)."),
    ] = None,
    seed: Seed = None,
    workers: Annotated[int | None, typer.Option(help="Processes that write rows (pool.workers).")] = None,
    rebuild: Rebuild = False,
) -> int:
    """Build the training pool and the shadow set from a source of questions and a template pack."""
    chosen = names("--tools", tools, ("wiki", "calc"))
    run = session.open(
        overrides(
            {
                "pool.path": session.inside("--out", out),
                "pool.n": n,
                "datasets": shares("--mix", mix, task_names()),
                "pool.max_turns": max_turns,
                "pool.clarify_rate": clarify_rate,
                "pool.tools": list(chosen) if chosen else None,
                "pool.templates_dir": session.given(templates_dir),
                "pool.hold_out": session.given(shadow),
                "pool.seed": seed,
                "pool.workers": workers,
            }
        )
    )
    return _build(session, run, rebuild)


def _build(session: Session, run: Run, rebuild: bool) -> int:
    from rc1_lib.pool.derived import PARTS
    from rc1_lib.pool.seed import build_due
    from rc1_lib.rows.playable import about_unplayable
    from rc1_lib.workspace.artifacts import read_manifest

    paths = {part: artifact.where(run) for part, artifact in PARTS.items()}
    with session.progress("building the pool") as report:
        wanted = build_due(run, rebuild=rebuild, progress=report)
    manifests: dict[str, Any] = {part: read_manifest(run.workspace, path) for part, path in paths.items()}
    for part, path in paths.items():
        done = "written" if part in wanted else "unchanged: it is already what this configuration makes"
        session.show(f"{part}: {manifests[part]['rows']} rows, {run.workspace.path(path)}, {done}")
        session.show(f"    sha256 {manifests[part]['sha256']}")
    body = manifests["pool"]["report"]
    session.show("rows by task: " + tables.counts(body["rows"]))
    session.show(f"second uses of a question: {body['second_uses_of_a_question']}")
    session.show(*filter(None, [about_unplayable(body.get("rows_without_user_replies", 0))]))
    session.show(*(f"left out: {why}: {count}" for why, count in body["dropped_questions"].items() if count))
    for task, reasons in manifests["pool"]["skipped_records"].items():
        session.show(*(f"skipped records of {task}: {why}: {count}" for why, count in reasons.items()))
    show_ending(
        session,
        Ending(
            "done", f"pool of {manifests['pool']['rows']} rows, shadow set of {manifests['shadow']['rows']}",
            following=then(session, "validate-pool"),
        ),
    )  # fmt: skip
    session.document({part: {**manifests[part], "written_now": part in wanted} for part in paths})
    return 0


def validate_pool(
    session: Session,
    pool: Annotated[Path | None, typer.Argument(help="The pool to judge. Default: pool.path.")] = None,
    min_distinct2: Annotated[float | None, typer.Option(help="Lowest distinct-2, on windows.")] = None,
    kl3_min: Annotated[float | None, typer.Option(help="Lowest 3-gram KL against the old pack.")] = None,
    roles_min: Annotated[int | None, typer.Option(help="Fewest roles.")] = None,
    styles_min: Annotated[int | None, typer.Option(help="Fewest styles.")] = None,
    max_dup_pct: Annotated[float | None, typer.Option(help="Most duplicate rows, in percent.")] = None,
    max_len: Annotated[int | None, typer.Option(help="Longest row, in tokens.")] = None,
    min_len: Annotated[int | None, typer.Option(help="Shortest row, in tokens.")] = None,
    leak_check: Annotated[Path | None, typer.Option(help="The shadow set. Default: shadow.path.")] = None,
    leak_ngram: Annotated[int | None, typer.Option(help="Words of an n-gram of the leak check.")] = None,
    leak_sim: Annotated[float | None, typer.Option(help="Highest similarity to a shadow question.")] = None,
    tasks: ByTask = None,
    mix: Mix = None,
    seed: Seed = None,
) -> int:
    """Check a pool: task mix, length, diversity, duplicates, and leakage from the shadow set."""
    from rc1_lib.evidence import Evidence
    from rc1_lib.rows.playable import about_unplayable, unplayable

    run = session.open(
        overrides(
            {
                "datasets": shares("--mix", mix, task_names()),
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
            }
        ),
        reading={"pool.path": session.given(pool), "shadow.path": session.given(leak_check)},
    )
    judged = by_task(tasks, run.config.datasets)
    evidence = Evidence(run)
    for name in ("pool", "shadow"):
        evidence.rows(name)  # a missing or damaged file is one sentence, not one a gate
    session.show(*filter(None, [about_unplayable(unplayable(evidence.rows("pool")))]))
    results = judge(session, run, _GATES, judged)
    read = {name: {"path": evidence.label(name), "sha256": evidence.sha256(name)} for name in ("pool", "shadow")}
    return conclude(
        session, run, f"pool {read['pool']['path']}", results, _REPORT, {"files": read, "by_task": judged},
        after_pass=then(session, "difficulty-metrics"),
        after_fail=again(session, "validate-pool", *flagged({"": pool, "--leak-check": leak_check})),
    )  # fmt: skip


def report_diversity(
    session: Session,
    pool: Annotated[
        Path | None, typer.Argument(help="Measure the rows of this pool. Default: the text of the pack itself.")
    ] = None,
    templates_dir: TemplatesDir = None,
    reference_dir: Annotated[
        Path | None, typer.Option(help="Pack that the divergence is measured against (pool.reference_templates_dir).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=f"The report. Default: {_DIVERSITY}.")] = None,
    seed: Seed = None,
) -> int:
    """Measure how varied the wording is: distinct-1/2, type-token ratio, 3-gram KL, Zipf slope, coverage."""
    from rc1_lib.workspace.artifacts import write_json

    target = session.report("--out", out, ("measured",)) or _DIVERSITY
    run = session.open(
        overrides(
            {
                "pool.templates_dir": session.given(templates_dir),
                "pool.reference_templates_dir": session.given(reference_dir),
                "pool.seed": seed,
            }
        ),
        reading={"pool.path": session.given(pool)},
    )
    report = _diversity(run, of_rows=pool is not None)
    write_json(run.workspace.path(target), report)
    for name, value in report.items():
        session.show(f"{name}: {tables.figure(value)}")
    show_ending(session, Ending("done", f"diversity of {report['measured']}", report=run.workspace.path(target)))
    session.document(report)
    return 0


def _diversity(run: Run, of_rows: bool) -> dict[str, Any]:
    from rc1_lib.evidence import Evidence
    from rc1_lib.pool.diversity_report import diversity_report, pack_report
    from rc1_lib.pool.rewording import reworded
    from rc1_lib.pool.templates import load_pack
    from rc1_lib.rows.frame import with_texts

    limits, evidence = run.config.gates.diversity, Evidence(run)
    pack, reference = load_pack(evidence.path("templates")), load_pack(evidence.path("reference_templates"))
    if pack.sha256 == reference.sha256:
        raise TemplateError(
            f"{evidence.path('templates')}: is the reference pack itself; name another with --templates-dir"
        )
    if not of_rows:
        return pack_report(run)
    rows = with_texts(evidence.rows("pool"))
    rows = rows.sample(min(rows.height, limits.kl_rows), seed=run.config.pool.seed, shuffle=True)
    measured = diversity_report(
        rows["written"], pack, reworded(rows, reference), window_bigrams=limits.window_bigrams, alpha=limits.kl_alpha,
        seed=run.config.pool.seed,
    )  # fmt: skip
    used = {f"{name}s_used": sorted(rows[name].unique()) for name in ("role", "style")}
    return {"measured": evidence.label("pool"), **measured, **used}
