"""`score`: the judge's scores of the dialogues in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.following import then
from rc1_lib.cli.options import overrides
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.errors import RC1Error
from rc1_lib.scoring.test_double import NOTICE


def score(
    session: Session,
    rows: Annotated[
        Path | None,
        typer.Option("--in", help="JSONL file of dialogues, each line with its messages. Default: the shadow set."),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Score the first N of them.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the scores to this file. Default: reports/rc1/scores.jsonl.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="The judge (judge.provider, SCORER_PROVIDER).")] = None,
    model: Annotated[str | None, typer.Option(help="The model that is asked (judge.model).")] = None,
    samples: Annotated[int | None, typer.Option(help="Replies per dialogue (judge.samples).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask for everything, whatever is stored.")] = False,
) -> int:
    """Score dialogues with the judge; replies are stored, so that an interrupted run goes on where it was."""
    given, target = session.given(rows), session.report("--out", out, ("dialogue", "medians", "variances"))
    run = session.open(overrides({"judge.provider": provider, "judge.model": model, "judge.samples": samples}))
    from rc1_lib.scoring.dialogues import read_dialogues
    from rc1_lib.scoring.judge import check_judge, open_judge, open_store, traffic_note
    from rc1_lib.scoring.score_files import SCORES, summary_path, write_scores

    if target is not None:
        session.report("--out", Path(summary_path(target)), ("scores", "spec_sha256"))  # which is written beside it
    source = run.workspace.path(given or run.config.shadow.path)
    if given is None and not source.exists():
        raise RC1Error(f"{source}: there is no shadow set yet; `rc1 build-pool` writes it, or name a file with --in")
    dialogues = read_dialogues(source, n)
    check_judge(run)
    with open_store(run) as store:
        judge = open_judge(run, store)
        with stages():
            judged = judge.score([one.messages for one in dialogues], fresh=fresh)
        summary = write_scores(run, judge, dialogues, judged, target or SCORES)
    written = run.workspace.path(summary["scores"])
    session.show(*[NOTICE] * summary["test_double"])
    session.show(_table(summary))
    session.show(*_sentences(summary))
    session.show(f"{judged.calls} calls, {traffic_note(judged.traffic, judged.usd)}")
    session.show(f"scores: {written}")
    if summary["unstable_samples"]:
        session.show(f"unstable samples: {run.workspace.path(summary['unstable_samples'])}")
    if summary["complete"]:
        words = f"{summary['scored']} of {summary['dialogues']} dialogues scored"
        place = run.workspace.path(summary_path(summary["scores"]))
        show_ending(session, Ending("done", words, report=place, following=then(session, "scorecache stat")))
    session.document(summary)
    if not summary["complete"]:
        raise RC1Error(f"{summary['incomplete']}. {written} is marked incomplete; what was paid for is kept")
    return 0


def _table(summary: Mapping[str, Any]) -> Table:
    title = f"{summary['provider']} {summary['model_asked']}, instructions {summary['spec']}"
    if not summary["complete"]:
        title += ", INCOMPLETE: of those scored alone, not to be relied on"
    table = Table(title=title, title_justify="left")
    table.add_column("dimension", overflow="fold")
    interval = f"its {100 * summary['confidence']:g} % interval"
    for head in ("mean of medians", "sd between samples", interval):
        table.add_column(head, justify="right", no_wrap=True)
    last = len(summary["dimensions"]) - 1
    for place, (name, one) in enumerate(summary["dimensions"].items(), 1):
        bounds = "-" if one["sd"] is None else f"{one['sd_low']:.4f} to {one['sd_high']:.4f}"
        table.add_row(name, _figure(one["mean_of_medians"]), _figure(one["sd"]), bounds, end_section=place == last)
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _sentences(summary: Mapping[str, Any]) -> list[str]:
    models = "" if not summary["models"] else f", answered by {', '.join(summary['models'])}"
    lines = [
        f"{summary['scored']} of {summary['dialogues']} dialogues scored ({100 * summary['coverage']:.1f} %), "
        f"{summary['samples']} samples each{models}",
        f"{summary['unstable']} unstable, {summary['straddling']} with samples on both sides of the verdict; "
        f"{summary['replayed']} replies replayed from the store at no cost",
    ]
    return lines + [f"    unscored, {one['dialogues']}: {one['reason']}" for one in summary["reasons"][:5]]
