"""`weight-calib`, `overclar-penalty` and `calibrate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.ending import Ending, judged
from rc1_lib.cli.flow_run import run_flow_of, tell_end
from rc1_lib.cli.following import again, then
from rc1_lib.cli.fresh_reports import stamps, written_since
from rc1_lib.cli.labels import Dimensions, GroupKey, LabelKey, ScaleOption, calibrate_on_labels
from rc1_lib.cli.options import Rebuild, overrides
from rc1_lib.cli.preflight import Build, Verbose
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.cli.verdicts import REPORTS, show_stages, show_step, stages_of
from rc1_lib.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from rc1_lib.run import Run


def weight_calib(
    session: Session,
    cv: Annotated[int | None, typer.Option(help="Folds, by source question (calibration.cv).")] = None,
    boot: Annotated[int | None, typer.Option(help="Bootstrap samples (calibration.boot).")] = None,
    l2: Annotated[float | None, typer.Option(help="Pull towards the old weights (calibration.l2).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of rows, folds and bootstrap (calibration.seed).")] = None,
    n: Annotated[int | None, typer.Option(help="Rows of the balanced pool that are judged (calibration.n).")] = None,
    rebuild: Rebuild = False,
    labels: Annotated[
        Path | None,
        typer.Option(help="Find weights on dialogues that people labelled instead; those in force stay as they are."),
    ] = None,
    label: LabelKey = "label",
    group: GroupKey = "group",
    dimensions: Dimensions = None,
    scale: ScaleOption = None,
) -> int:
    """Fit the weights of the calibrated reward, and write them if their gate passes."""
    keys = {"cv": cv, "boot": boot, "l2": l2, "seed": seed, "n": n}
    given = session.given(labels)
    run = session.open(overrides({f"calibration.{name}": value for name, value in keys.items()}))
    if given is not None:
        if n is not None or rebuild:
            raise ConfigError("--labels: --n and --rebuild are about the balanced pool; leave them out")
        return calibrate_on_labels(session, run, given, {"label": label, "group": group}, dimensions, scale)
    from rc1_lib.calibration.stages import BY_NAME, check_overwriting, evaluate_here, run_stages
    from rc1_lib.cli.reward_tables import calibration_table

    check_overwriting(run, rebuild=rebuild)
    with stages():
        (outcome,) = run_stages(run, evaluate_here, stages=(BY_NAME["calibration"],))
    session.show(*_shown(calibration_table(outcome.body)))
    rows = outcome.body["rows"]
    if rows["taken"] < rows["asked_for"]:
        session.show(f"{rows['asked_for']} rows were asked for, the balanced pool holds {rows['taken']}")
    if outcome.passed:
        session.show(f"weights: {run.workspace.path(run.config.weights)}, written", *_ticket_note(run))
    else:
        session.show(
            f"weights: {run.workspace.path(run.config.weights)} is not written; the candidate is in the report"
        )
    return show_step(
        session, run, outcome, {"written": run.config.weights if outcome.passed else None},
        after_pass=then(session, "overclar-penalty", "--ablation"),
        after_fail=again(session, "weight-calib"),
    )  # fmt: skip


def overclar_penalty(
    session: Session,
    alpha: Annotated[float | None, typer.Option(help="Price of one needless question (overclar.alpha).")] = None,
    cap: Annotated[int | None, typer.Option(help="Questions that cost at most (overclar.cap).")] = None,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Compare what is chosen with the penalty and without it.")
    ] = False,
) -> int:
    """Show what the penalty for needless questions takes from dialogues; with --ablation, check that it works."""
    run = session.open(overrides({"overclar.alpha": alpha, "overclar.cap": cap}))
    if not ablation:
        from rc1_lib.evidence import Evidence
        from rc1_lib.rows.counts import add_counts

        rows = add_counts(Evidence(run).rows("shadow"))
        price, on = run.config.overclar, run.config.use_overclar_penalty
        drawn = _penalties(rows, price.alpha, price.cap)
        session.show(_penalty_table(drawn, price.alpha, price.cap))
        if not on:
            session.show("use_overclar_penalty is false: none of this is charged")
        session.document({"alpha": price.alpha, "cap": price.cap, "on": on, "rows": drawn})
        return 0
    from rc1_lib.calibration.overclar_ablation import overclar_ablation
    from rc1_lib.cli.reward_tables import ablation_table

    with stages():
        outcome = overclar_ablation(run)
    session.show(*_shown(ablation_table(outcome.body)))
    return show_step(
        session, run, outcome,
        after_pass=then(session, "preflight"), after_fail=again(session, "overclar-penalty", "--ablation"),
    )  # fmt: skip


def calibrate(session: Session, build: Build = "auto", rebuild: Rebuild = False, verbose: Verbose = False) -> int:
    """Find the reward's weights in stages, as a flow, and write them if every stage passes.

    The stages are: shadow run, weights, adversarial policies, the penalty's ablation, shadow run again.
    """
    run = session.open()
    from rc1_lib.calibration.performable import check_performable
    from rc1_lib.calibration.stages import REPORT
    from rc1_lib.cli.preflight import revocation

    check_performable(run)  # the flow does so too; here the answer is there before a server has started
    before = stamps(run, REPORTS)
    outcome = run_flow_of(session, run, "calibrate", verbose=verbose, build="always" if rebuild else build)
    stages_done = stages_of(written_since(run, before, REPORTS))
    show_stages(session, run, stages_done)
    session.show(outcome.message, *([] if outcome.exit_code else _ticket_note(run)))
    written = None if outcome.exit_code or not run.config.pays_judged_score else run.config.weights
    red = revocation(session) if outcome.exit_code else []
    following = again(session, "calibrate") if outcome.exit_code else then(session, "preflight")
    ending = judged("calibration", [one["gate"] for one in stages_done], run.workspace.path(REPORT))
    if not stages_done or (ending.verdict == "fail") != bool(outcome.exit_code):
        ending = Ending("fail" if outcome.exit_code else "pass", outcome.message)
    ending = replace(ending, following=following)
    return tell_end(session, outcome, {"stages": stages_done, "written": written}, ending, *red)


def _ticket_note(run: Run) -> list[str]:
    """What new weights mean for a ticket that was valid so far."""
    from rc1_lib.errors import RC1Error
    from rc1_lib.preflight.ticket import read_ticket

    try:
        ticket = read_ticket(run)
    except RC1Error:
        return []
    return (
        [] if ticket["revoked"] else ["the ticket vouches for the weights before these: rc1 preflight issues another"]
    )


def _penalties(rows: pl.DataFrame, alpha: float, cap: int) -> list[dict[str, Any]]:
    """How many dialogues asked how often, and what each of them pays."""
    import polars as pl

    from rc1_lib.reward.overclarification import over_clarification_penalty

    counts = rows.group_by("needs_clarification", "clarifications").agg(dialogues=pl.len())
    return [
        {
            **row,
            "penalty": over_clarification_penalty(
                row["clarifications"], row["needs_clarification"], alpha=alpha, cap=cap
            ),
        }
        for row in counts.sort("needs_clarification", "clarifications").iter_rows(named=True)
    ]


def _penalty_table(rows: Sequence[dict[str, Any]], alpha: float, cap: int) -> Table:
    table = Table(title=f"penalty {alpha:g} * min(c, {cap}) where nothing had to be asked", title_justify="left")
    for head in ("something was missing", "questions", "dialogues", "penalty each"):
        table.add_column(head, justify="left" if head.startswith("some") else "right")
    for row in rows:
        missing = "yes" if row["needs_clarification"] else "no"
        table.add_row(missing, str(row["clarifications"]), str(row["dialogues"]), f"{row['penalty']:.2f}")
    return table


def _shown(tables: Table | Sequence[Table]) -> tuple[Table, ...]:
    return (tables,) if isinstance(tables, Table) else tuple(tables)
