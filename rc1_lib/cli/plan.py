"""Before money is spent: `plan`, and the confirmation of a high bill."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from rc1_lib.cli import tables
from rc1_lib.cli.endings import Ending, Failure, end, then
from rc1_lib.cli.session import Session, quieten_models, stages
from rc1_lib.cli.streams import terminal
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import now, write_json
from rc1_lib.workspace.folder import holding

if TYPE_CHECKING:
    from rc1_lib.forecast.judge_cost import Stage
    from rc1_lib.run import Run

_REPORT = "reports/train_plan.json"


def plan(
    session: Session,
    all_seeds: Annotated[bool, typer.Option("--all-seeds", help="Plan all of `seeds`, not one.")] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Include the evaluation on the held-out prompts.")
    ] = True,
    pool_seed: Annotated[int | None, typer.Option(help="The preflight's --seed (pool.seed).")] = None,
) -> int:
    """Estimate what a training will take: hours, judge calls and USD, from two timed steps.

    It trains three steps, the first to warm up, and discards them, without writing a checkpoint. A live judge is asked
    about their episodes. The command exits with 2 if a run will pause at training.cap. It needs the training's ticket.
    """
    run = session.open({"pool.seed": pool_seed}, remembered=True)
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    quieten_models(run)
    from rc1_lib.config.file import departures
    from rc1_lib.forecast.bill import cap_reached, evaluation_bill, run_pilot, training_bill
    from rc1_lib.run import published_config
    from rc1_lib.training.ppo_run import prepare

    with holding(run.workspace, "a pilot of training"), stages():
        pilot = run_pilot(prepare(run), run.config.seeds[0])
    seeds = len(run.config.seeds) if all_seeds else 1
    parts = {"training": training_bill(run, pilot, seeds)}
    if evaluate:
        parts["evaluation"] = evaluation_bill(run, pilot, seeds)
    capped = cap_reached(training_bill(run, pilot, 1), run.config.steps, run.config.training.cap)
    body = {
        "config_sha256": run.config_sha256,
        "profile": run.config.profile,
        "thresholds_changed": departures(run.config, published_config()),
        "seeds": seeds,
        "steps": run.config.steps,
        "pilot": asdict(pilot),
        "parts": {name: asdict(bill) for name, bill in parts.items()},
        "time": now(),
        "cap": capped,
    }
    write_json(run.workspace.path(_REPORT), body)
    rows = [(name, tables.rounded(one.hours), f"{one.judge_calls:,}", _usd(one.usd)) for name, one in parts.items()]
    title = f"{seeds} x {run.config.steps:,} steps on {pilot.device}, from two timed steps"
    session.show(tables.table(title, ("", "hours", "judge calls", "USD"), rows, ("hours", "judge calls", "USD")))
    words = f"{tables.rounded(sum(one.hours for one in parts.values()))} hours"
    report = run.workspace.path(_REPORT)
    ending = Ending("pass", words, report=report)
    if capped:
        following = then(session, "preflight", when="with another training.cap, or fewer steps")
        ending = Ending("fail", words, [Failure(one) for one in capped], report, following)
    return end(session, ending, {"exit_code": 2 if capped else 0, **body})


def _usd(value: float | None) -> str:
    return "unknown" if value is None else tables.rounded(value)


def preflight_cost_agreed(session: Session, run: Run, rounds: Collection[int], *, calibrates: bool = True) -> bool:
    """Show what a live judge will cost in a preflight, or in a calibration without `rounds`; see `_agreed`."""
    from rc1_lib.forecast.judge_cost import preflight_stages, shadow_and_takes

    return _agreed(
        session, run, lambda: preflight_stages(run, shadow_and_takes(run), rounds=rounds, calibrates=calibrates)
    )


def training_cost_agreed(session: Session, run: Run, seeds: int, *, evaluate: bool) -> bool:
    """Show what a live judge will cost at most in a training; see `_agreed`."""
    from rc1_lib.forecast.judge_cost import shadow_and_takes, training_stages

    return _agreed(session, run, lambda: training_stages(run, shadow_and_takes(run)[1], seeds, evaluate=evaluate))


def _agreed(session: Session, run: Run, stages_of: Callable[[], list[Stage]]) -> bool:
    """Show what a live judge will cost; above `judge.ask_above_usd` ask the user to confirm, on a terminal.

    If the requests cannot be counted, for example because a file is damaged, the run itself reports why.

    Returns:
        Whether the user has agreed.

    Raises:
        RC1Error: when the judge may cost more than that and the user has not agreed.
    """
    from rc1_lib.forecast.judge_cost import above_limit, refuse_above_limit
    from rc1_lib.judge.providers import LIVE

    try:
        stages = stages_of() if run.config.judge.provider in LIVE else []
    except RC1Error:
        return False
    if not stages:
        return False
    session.show(*_by_stage(run, "the judge's bill", stages))
    if (why := above_limit(run, stages)) and sys.stdin.isatty() and terminal().isatty() and not session.options.as_json:
        try:
            agreed = typer.confirm(f"{why}. Go on?", err=True)
        except typer.Abort:
            agreed = False
        if not agreed:
            raise RC1Error("you declined the cost of the judge; no call was made")
        return True
    refuse_above_limit(run, stages)
    return False


def _by_stage(run: Run, title: str, stages: Sequence[Stage]) -> tuple[Table, str]:
    """Return a table of calls, tokens and USD by stage, and a line that says how they were estimated."""
    from rc1_lib.forecast.judge_cost import cost_of, tokens_of
    from rc1_lib.judge.budget import prices_of
    from rc1_lib.judge.providers import whom

    prices, source = prices_of(run.config.judge)
    tokens = tokens_of(run)
    known = f"measured on {tokens.measured} replies" if tokens.measured else "bounds, no replies have been measured yet"
    numbers = ("calls", "stored", "tokens in", "out", "USD")

    def line(name: str, part: Sequence[Stage]) -> tuple[str, ...]:
        cost = cost_of(part, tokens, prices)
        counts = (f"{cost.calls:,}", f"{cost.stored:,}" if cost.stored else "")
        return name, *counts, tables.rounded(cost.tokens_in), tables.rounded(cost.tokens_out), _usd(cost.usd)

    rows = [*(line(one.name, [one]) for one in stages), None, line("all", stages)]
    table = tables.table(f"{title}: {whom(run.config.judge)}", ("", *numbers), rows, numbers)
    return table, f"tokens: {known}; retries are not counted. Prices: {source}"
