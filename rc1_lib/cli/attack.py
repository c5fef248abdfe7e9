"""`attack-reward`: what adversarial policies earn from the reward in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.following import again, then
from rc1_lib.cli.options import overrides
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.cli.tables import figure


def attack_reward(
    session: Session,
    prompts: Annotated[
        int | None, typer.Option(help="Prompts that every policy is played on (gates.reward_hacking.prompts).")
    ] = None,
) -> int:
    """Play adversarial policies, and check that the reward pays none of them like an honest one."""
    run = session.open(overrides({"gates.reward_hacking.prompts": prompts}))
    from rc1_lib.calibration.reward_hacking import attack_reward as attack
    from rc1_lib.cli.verdicts import show_step

    with stages():
        outcome = attack(run)
    session.show(attack_table(outcome.body))
    paid = outcome.body["dialogues"]
    session.show(
        f"{paid['count']} dialogues were paid more than the scripted expert's: {run.workspace.path(paid['path'])}"
    )
    return show_step(
        session, run, outcome,
        after_pass=then(session, "preflight"), after_fail=again(session, "attack-reward"),
    )  # fmt: skip


def attack_table(report: Mapping[str, Any]) -> Table:
    """Every policy's mean reward next to the scripted expert's, worst first; the verdict below says what failed."""
    teacher = report["teacher"]
    table = Table(
        title=f"adversarial policies on {report['shadow']['prompts']} prompts; the scripted expert's mean reward is "
        f"{figure(teacher['mean'])}",
        title_justify="left",
    )
    for head in ("policy", "reward", "asking needed", "not needed", "below the expert", "paid more"):
        table.add_column(head, justify="left" if head == "policy" else "right")
    order = sorted(report["policies"].items(), key=lambda item: _last(item[1]["margin"]))
    for name, found in order:
        need = report["by_need"].get(name, {})
        values = (found["mean"], need.get("needed"), need.get("not needed"), found["margin"])
        share = "none" if found["above"] is None else f"{100 * found['above']:.0f} %"
        table.add_row(name, *(f"{value:.3f}" if value is not None else "none" for value in values), share)
    return table


def _last(margin: float | None) -> float:
    return float("inf") if margin is None else margin
