"""`check-answers`: does a task's rule accept right answers in every spelling, and only those?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.endings import again, flagged
from rc1_lib.cli.session import Session
from rc1_lib.cli.tables import table
from rc1_lib.cli.verdicts import conclude
from rc1_lib.errors import ConfigError, RowError
from rc1_lib.task_specs import task_spec

if TYPE_CHECKING:
    from rc1_lib.answer_rules.check import Rate, RuleReport
    from rc1_lib.answer_rules.golds import Sample
    from rc1_lib.records import Task
    from rc1_lib.run import Run

_REPORT = "reports/rc1/check_answers.json"


def check_answers(
    session: Session,
    task: Annotated[str | None, typer.Option(help="The task whose rule to test. Default: all in the pool.")] = None,
    golds: Annotated[
        Path | None,
        typer.Option(
            help="Gold answers of --task to use instead of the pool's: a JSONL file with `answer`, and optionally "
            "`aliases` and `question`."
        ),
    ] = None,
) -> int:
    """Test the answer rules: do they accept right answers in many spellings, and reject wrong ones?"""
    from rc1_lib.gates.answer_rule import judged, reports_of

    if golds is not None and task is None:
        raise ConfigError("--golds: needs --task, the task that these answers belong to")
    if task is not None:
        task_spec(task)
    run = session.open()
    known = _of_the_pool(run, task) if golds is None else {str(task): _read(session.given(golds), run)}
    with session.progress("asking the rules"):
        reports = reports_of(known, lambda name: task_spec(name).is_right)
    session.show(failures_table(reports))
    read = "the pool" if golds is None else str(golds)
    return conclude(
        session, run, f"answer rules, tested on gold answers of {read}", [judged(reports)],
        _REPORT,
        {"golds": read, "rules": {name: as_json(report) for name, report in reports.items()}},
        after_fail=again(session, "check-answers", *flagged({"--task": task, "--golds": golds})),
    )  # fmt: skip


def failures_table(reports: Mapping[Task, RuleReport]) -> Table:
    """Return the kinds of answers that each rule got wrong, worst first, and the totals."""
    rows: list[tuple[object, ...]] = []
    for task, report in reports.items():
        for one in sorted((one for one in report.kinds if one.rate.failed), key=lambda one: -one.rate.share):
            said = "right, rejected" if one.right else "wrong, accepted"
            rows.append((task, one.kind.name, said, *_cells(one.rate)))
        rows.append((task, "all kinds", "wrong, accepted", *_cells(report.wrong_paid)))
        rows.append((task, "all kinds", "right, rejected", *_cells(report.right_refused)))
    heads = ("task", "kind", "", "tested", "wrong", "share and interval")
    return table("answers that a rule got wrong, by kind", heads, rows, ("tested", "wrong"))


def as_json(report: RuleReport) -> dict[str, Any]:
    """Return a rule's report for JSON, including kinds without a failure."""
    return {
        "form": report.form.value,
        "different_golds": report.distinct,
        "golds_used": report.used,
        "wrong_paid": _figures(report.wrong_paid),
        "right_refused": _figures(report.right_refused),
        "answers_at_which_it_breaks": report.broken,
        "kinds": [
            {"kind": one.kind.name, "sentence": one.kind.sentence, "right": one.right, **_figures(one.rate)}
            for one in report.kinds
        ],
    }


def _cells(rate: Rate) -> tuple[int, int, str]:
    share = f"{100 * rate.share:.1f} % [{100 * rate.low:.1f}, {100 * rate.high:.1f}]" if rate.asked else "none tested"
    return rate.asked, rate.failed, share


def _figures(rate: Rate) -> dict[str, Any]:
    return {"asked": rate.asked, "failed": rate.failed, "share": rate.share, "low": rate.low, "high": rate.high}


def _of_the_pool(run: Run, task: Task | None) -> dict[Task, Sample]:
    from rc1_lib.evidence import Evidence
    from rc1_lib.gates.answer_rule import pool_golds

    evidence = Evidence(run)
    found = pool_golds(evidence.rows("pool"))
    if task is not None and task not in found:
        raise ConfigError(
            f"--task {task}: the pool {evidence.label('pool')} has no rows of this task, only of {', '.join(found)}; "
            f"name one of these, or give your own answers with --golds"
        )
    return {name: sample for name, sample in found.items() if task in (None, name)}


def _read(path: str, run: Run) -> Sample:
    import orjson

    from rc1_lib.answer_rules.golds import gold_of, sample
    from rc1_lib.workspace.input_files import open_text

    place = run.workspace.root / path
    try:
        with open_text(place) as stream:
            lines = stream.readlines()
    except OSError as error:
        raise RowError(f"--golds {path}: cannot be read ({error.strerror}), expected a JSONL file") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(gold_of(orjson.loads(line)))
        except ValueError as error:
            raise RowError(f"--golds {path}, line {number}: {error}") from None
    if not found:
        raise RowError(f"--golds {path}: has no gold answers; expected one JSON object per line, with `answer`")
    return sample(found)
