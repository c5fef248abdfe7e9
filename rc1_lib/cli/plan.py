"""Commands before a training: `plan` (what it will take) and `learnability` (whether there is anything to learn)."""

from __future__ import annotations

import operator
from dataclasses import asdict, replace
from functools import reduce
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from rc1_lib.cli import tables
from rc1_lib.cli.endings import Ending, Failure, again, end, judged, then
from rc1_lib.cli.options import Seed
from rc1_lib.cli.session import Session, quieten_models, stages
from rc1_lib.errors import ConfigError
from rc1_lib.workspace.artifacts import now, write_json
from rc1_lib.workspace.folder import holding

if TYPE_CHECKING:
    from rc1_lib.forecast.bill import Bill, Pilot
    from rc1_lib.run import Run

_REPORT = "reports/train_plan.json"
_PILOT, _FEWEST = 4, 2


def plan(
    session: Session,
    all_seeds: Annotated[bool, typer.Option("--all-seeds", help="Of every one of `seeds`, not of one.")] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="With the evaluation on the held-out prompts.")
    ] = True,
    pilot_steps: Annotated[
        int | None,
        typer.Option(
            min=_FEWEST,
            help=f"Steps that are timed, after one to warm up; at most as many as there are. Default: {_PILOT}, or "
            f"`steps` where these are fewer.",
        ),
    ] = None,
    pool_seed: Annotated[int | None, typer.Option(help="The preflight's --seed (pool.seed).")] = None,
) -> int:
    """Estimate what a training will take: hours, GPU-hours, calls of the judge and USD, each with an interval.

    It trains a few steps and discards them; no checkpoint is written. A live judge is asked about their
    episodes. GPU-hours are the hours times the GPUs that the pilot held: one, or one for each process of a launcher
    (accelerate launch, torchrun) that starts the plan as it will start the training; a vLLM server's are not among
    them. Exits 2 where a run is sure to pause at training.cap. Needs the ticket that the training needs.
    """
    run = session.open({"pool.seed": pool_seed})
    timed = _timed_steps(run, pilot_steps)
    session.started = True
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    quieten_models(run)
    from rc1_lib.forecast.bill import beside_cap, evaluation_bill, judge_rates, run_pilot, training_bill
    from rc1_lib.training.ppo_run import prepare

    with holding(run.workspace, "a pilot of training"), stages():
        pilot = run_pilot(prepare(run), run.config.seeds[0], timed)
    rates, seeds = judge_rates(run), len(run.config.seeds) if all_seeds else 1
    one = training_bill(run, pilot, rates)
    parts = {"training": one * seeds, **({"evaluation": evaluation_bill(run, seeds, pilot, rates)} if evaluate else {})}
    verdicts = beside_cap(one, run.config.steps, run.config.training.cap)
    certain = [verdict for verdict in verdicts if verdict.certain]
    body = {
        "config_sha256": run.config_sha256,
        "profile": run.config.profile,
        "seeds": seeds,
        "steps": run.config.steps,
        "pilot": asdict(pilot),
        "parts": {name: asdict(bill) for name, bill in parts.items()},
        "time": now(),
        "cap": [asdict(verdict) for verdict in verdicts],
    }
    write_json(run.workspace.path(_REPORT), body)
    session.show(_table(run, parts, seeds, pilot), *(verdict.words for verdict in verdicts))
    whole = reduce(operator.add, parts.values())
    words = f"{tables.estimate(whole.hours)} hours, {tables.estimate(whole.usd)} USD for the judge"
    report = run.workspace.path(_REPORT)
    ending = Ending("pass", words, report=report, following=then(session, "train"))
    if certain:
        failures = [Failure(verdict.words) for verdict in certain]
        following = then(session, "preflight", when="with another training.cap, or fewer steps")
        ending = Ending("fail", words, failures, report, following)
    return end(session, ending, {"exit_code": 2 if certain else 0, **body})


def _timed_steps(run: Run, asked: int | None) -> int:
    """Return how many steps the pilot times: as many as were asked for, else a few; an interval needs two.

    Raises:
        ConfigError: for more than the training has, which would take longer than what it is to foretell.
    """
    most = max(_FEWEST, run.config.steps)
    if asked is not None and asked > most:
        raise ConfigError(
            f"--pilot-steps: found {asked:,}, but the training that is planned has `steps` {run.config.steps:,}; give "
            f"a number from {_FEWEST} to {most:,}"
        )
    return min(_PILOT, most) if asked is None else asked


def _table(run: Run, parts: dict[str, Bill], seeds: int, pilot: Pilot) -> Table:
    device = f"{pilot.gpus} x {pilot.device}" if pilot.gpus > 1 else pilot.device
    title = f"{seeds} x {run.config.steps:,} steps on {device}, by {len(pilot.steps)} steps of a pilot (95 %)"
    rows = [(name, *_cells(bill)) for name, bill in parts.items()]
    whole = [None, ("all", *_cells(reduce(operator.add, parts.values())))] if len(parts) > 1 else []
    numbers = ("hours", "GPU-hours", "judge calls", "USD")
    return tables.table(title, ("", *numbers), [*rows, *whole], numbers)


def _cells(bill: Bill) -> list[str]:
    return [tables.estimate(one) for one in (bill.hours, bill.gpu_hours, bill.judge_calls, bill.usd)]


def learnability(session: Session, seed: Seed = None) -> int:
    """Check before training that there is something to learn: do rollouts of one prompt get different rewards?

    Fails where no gradient can come of it, or where the evaluation could not show what is learned. Needs the ticket
    that the training needs; trains nothing. A live judge is asked about the episodes.
    """
    run = session.open({"pool.seed": seed})
    session.started = True
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    quieten_models(run)
    from rc1_lib.forecast.learnability import run_learnability, summary_rows
    from rc1_lib.training.ppo_run import prepare

    with holding(run.workspace, "a look at learnability"), stages():
        found = run_learnability(prepare(run))
    gate = found.body["gate"]
    title = f"{found.body['takes']} takes of each prompt (95 %)"
    numbers = ("tried", "pass@1", f"pass@{found.body['takes']}", "all or none")
    session.show(
        tables.table(title, ("prompts of", *numbers), summary_rows(dict(found.body)), numbers),
        *tables.verdict("learnability", gate), *tables.notes(found.body, found.report),
    )  # fmt: skip
    ending = judged(
        "learnability", [gate], run.workspace.path(found.report),
        after_pass=then(session, "plan"), after_fail=again(session, "preflight"),
    )  # fmt: skip
    code = 0 if found.passed else 2
    return end(session, ending, {"exit_code": code, **found.body}, code)
