"""`learnability`: whether the start can learn anything from these prompts, before it is trained."""

from __future__ import annotations

from dataclasses import replace

from rich import box
from rich.table import Table

from rc1_lib.cli import tables
from rc1_lib.cli.ending import judged, show_ending
from rc1_lib.cli.following import again, then
from rc1_lib.cli.options import Seed, overrides
from rc1_lib.cli.quiet import quieten
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.workspace.lock import holding

_RED = 2


def learnability(session: Session, seed: Seed = None) -> int:
    """Check before training that there is something to learn: do rollouts of one prompt get different rewards?

    Fails where no gradient can come of it, or where the evaluation could not show what is learned. Needs the ticket
    that the training needs; trains nothing. A live judge is asked about the episodes.
    """
    run = session.open(overrides({"pool.seed": seed}))
    session.started = True
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
    from rc1_lib.forecast.learnability import run_learnability, summary_rows
    from rc1_lib.training.ppo_run import prepare

    with holding(run.workspace, "a look at learnability"), stages():
        found = run_learnability(prepare(run))
    gate = found.body["gate"]
    title = f"{found.body['takes']} takes of each prompt (95 %)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("prompts of", "tried", "pass@1", f"pass@{found.body['takes']}", "all or none"):
        table.add_column(head, justify="left" if head == "prompts of" else "right", no_wrap=True)
    for cells in summary_rows(dict(found.body)):
        table.add_row(*cells)
    session.show(
        table, tables.gates_table("learnability", [gate]), *tables.red_lines(gate, ""), *tables.undecided_lines([gate])
    )
    session.show(*tables.notes(found.body, found.report))
    show_ending(
        session,
        judged(
            "learnability", [gate], run.workspace.path(found.report),
            after_pass=then(session, "plan"), after_fail=again(session, "preflight"),
        ),
    )  # fmt: skip
    code = 0 if found.passed else _RED
    session.document({"exit_code": code, **found.body})
    return code
