"""`label`: a sheet for people to label, and how far the judge agrees with their labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.endings import Ending, end, then
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.tables import table
from rc1_lib.cli.verdicts import show_step
from rc1_lib.errors import ConfigError


def label(
    session: Session,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Number of dialogues (gates.judge_agreement.min_labels).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The sheet, .jsonl or .csv (judge.labels.path).")] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="SHEET", help="Write none: compare the judge with the labels in this one.")
    ] = None,
) -> int:
    """Write a sheet of dialogues for people to label, or, with --labels, compare the judge's verdicts with theirs.

    The sheet has dialogues of the shadow set, in random order and without scores. The comparison is kappa and raw
    agreement, with intervals, and the verdict of the gate judge_agreement.
    """
    if labels is not None:
        if n is not None or out is not None:
            raise ConfigError("--labels: compares, and --n and --out are for a new sheet; leave them out")
        return _compare(session, labels)
    run = session.open({"judge.labels.path": session.inside("--out", out)}, remembered=True)
    from rc1_lib.labels.label_file import write_sheet
    from rc1_lib.pool.checked_rows import rows_of
    from rc1_lib.pool.derived import SHADOW
    from rc1_lib.reward.chat import dialogue_of

    path = run.workspace.path(run.config.judge.labels.path)
    rows = rows_of(run, SHADOW)
    dialogues = [
        (group, dialogue_of([], messages, "a row"))
        for group, messages in zip(rows["source_id"], rows["messages"].to_list(), strict=True)
    ]
    written = write_sheet(path, dialogues, n or run.config.gates.judge_agreement.min_labels, run.config.shadow.seed)
    name = run.workspace.name(path)
    session.show(
        f"sheet: {path}; write good or bad under 'label', then compare: {then(session, 'label', '--labels', name)}"
    )
    document = {"exit_code": 0, "sheet": name, "dialogues": written}
    return end(session, Ending("done", f"{written} dialogues to label"), document)


def _compare(session: Session, labels: Path) -> int:
    given = session.given(labels)
    run = session.open(remembered=True)
    from rc1_lib.calibration.judge_agreement import judge_agreement
    from rc1_lib.labels.label_file import read_labels

    with stages():
        outcome = judge_agreement(run, read_labels(run.workspace.path(given)))
    session.show(agreement_table(outcome.body))
    return show_step(session, run, outcome, "label", "--labels", str(labels))


def agreement_table(report: Mapping[str, Any]) -> Table:
    """Return the figures with their intervals."""
    lines = [
        (name, *(_number(one[key]) for key in ("value", "low", "high"))) for name, one in report["agreement"].items()
    ]
    numbers = ("value", "low", "high")
    dialogues, score, judge = report["labels"]["dialogues"], report["judged_by"]["score"], report["scoring"]["judge"]
    return table(
        f"{dialogues} dialogues, by the {score} of {judge['model'] or judge['provider']}",
        ("", *numbers),
        lines,
        numbers,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
