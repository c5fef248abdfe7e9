"""`scale-up`: run the flow, then print every measure at every size."""

from __future__ import annotations

from rich.table import Table

from rc1_lib.cli.ending import Ending
from rc1_lib.cli.flow_run import run_flow_of, tell_end
from rc1_lib.cli.following import again, then
from rc1_lib.cli.fresh_reports import stamps, written_since
from rc1_lib.cli.options import Rebuild, Seed, overrides
from rc1_lib.cli.preflight import Build, Verbose
from rc1_lib.cli.session import Session
from rc1_lib.cli.tables import notes


def scale_up(
    session: Session,
    seed: Seed = None,
    build: Build = "auto",
    rebuild: Rebuild = False,
    verbose: Verbose = False,
) -> int:
    """Grow the pool from size to size (scale_up.sizes), with gates before and after each; stop at the first fail.

    What passed before is not judged again, also after a kill. No ticket is issued or revoked.
    """
    run = session.open(overrides({"pool.seed": seed}))
    from rc1_lib.scale_up.report import PICTURE, REPORT
    from rc1_lib.scale_up.sizes import steps

    steps(run)  # the flow asks too; here the answer is there before a server has started
    before = stamps(run, REPORT)
    outcome = run_flow_of(session, run, "scale_up", verbose=verbose, build="always" if rebuild else build)
    report = written_since(run, before, REPORT).get(REPORT)
    if report:
        session.show(_table(report["table"]), *notes(report, REPORT))
        session.show(f"picture: {run.workspace.path(PICTURE)}")
    session.show(outcome.message)
    place = run.workspace.path(REPORT) if report else None
    if outcome.exit_code:
        ending = Ending("fail", outcome.message, report=place, following=again(session, "scale-up"))
    else:
        ending = Ending("pass", outcome.message, report=place, following=then(session, "preflight"))
    return tell_end(
        session, outcome, {"report": REPORT if report else None, "table": report and report["table"]}, ending
    )


def _table(rows: list[dict[str, str]]) -> Table:
    table = Table(title="measures by size", title_justify="left")
    for place, head in enumerate(rows[0]):
        table.add_column(head, justify="left" if place < 2 else "right")
    for row in rows:
        table.add_row(*row.values())
    return table
