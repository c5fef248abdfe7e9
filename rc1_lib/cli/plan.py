"""Before money is spent: `plan`, `learnability`, `judge-cost`, and the confirmation of a high bill."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli import tables
from rc1_lib.cli.endings import Ending, Failure, again, end, judged, then
from rc1_lib.cli.options import Seed
from rc1_lib.cli.session import Session, quieten_models, stages
from rc1_lib.cli.streams import terminal
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.workspace.artifacts import now, write_json
from rc1_lib.workspace.folder import holding

if TYPE_CHECKING:
    from rc1_lib.forecast.bill import Bill, Pilot
    from rc1_lib.forecast.judge_cost import Stage, TokenRates
    from rc1_lib.run import Run

_REPORT = "reports/train_plan.json"
_PILOT, _FEWEST = 4, 2
_SAMPLES = (1, 3)
_SMALLER = 4
"""The smaller attack that `judge-cost` shows has this many times fewer prompts."""


def plan(
    session: Session,
    all_seeds: Annotated[bool, typer.Option("--all-seeds", help="Plan all of `seeds`, not one.")] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Include the evaluation on the held-out prompts.")
    ] = True,
    pilot_steps: Annotated[
        int | None,
        typer.Option(
            min=_FEWEST,
            help=f"Steps to time, after one to warm up; at most `steps`. Default: {_PILOT}, or `steps` if that is "
            f"less.",
        ),
    ] = None,
    pool_seed: Annotated[int | None, typer.Option(help="The preflight's --seed (pool.seed).")] = None,
) -> int:
    """Estimate what a training will take: hours, GPU-hours, judge calls and USD, each with an interval.

    It trains a few steps and discards them, without writing a checkpoint. A live judge is asked about their episodes.
    GPU-hours are hours times the GPUs of the pilot: one, or one per process if a launcher (accelerate launch,
    torchrun) starts the plan as it will start the training. A vLLM server's GPUs are not counted. The command exits
    with 2 if a run is certain to pause at training.cap. It needs the training's ticket.
    """
    run = session.open({"pool.seed": pool_seed})
    timed = _timed_steps(run, pilot_steps)
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    quieten_models(run)
    from rc1_lib.config.file import departures
    from rc1_lib.forecast.bill import cap_verdicts, evaluation_bill, judge_rates, run_pilot, training_bill
    from rc1_lib.run import published_config
    from rc1_lib.training.ppo_run import prepare

    with holding(run.workspace, "a pilot of training"), stages():
        pilot = run_pilot(prepare(run), run.config.seeds[0], timed)
    rates, seeds = judge_rates(run), len(run.config.seeds) if all_seeds else 1
    one = training_bill(run, pilot, rates)
    parts = {"training": one * seeds, **({"evaluation": evaluation_bill(run, seeds, pilot, rates)} if evaluate else {})}
    verdicts = cap_verdicts(one, run.config.steps, run.config.training.cap)
    certain = [verdict for verdict in verdicts if verdict.certain]
    body = {
        "config_sha256": run.config_sha256,
        "profile": run.config.profile,
        "thresholds_changed": departures(run.config, published_config()),
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
    """Return how many steps the pilot times: `asked`, or a few; an interval needs two.

    Raises:
        ConfigError: when the pilot would have more steps than the training.
    """
    most = max(_FEWEST, run.config.steps)
    if asked is not None and asked > most:
        raise ConfigError(
            f"--pilot-steps: found {asked:,}, but the training has `steps` {run.config.steps:,}; give a number from "
            f"{_FEWEST} to {most:,}"
        )
    return min(_PILOT, most) if asked is None else asked


def _table(run: Run, parts: dict[str, Bill], seeds: int, pilot: Pilot) -> Table:
    device = f"{pilot.gpus} x {pilot.device}" if pilot.gpus > 1 else pilot.device
    title = f"{seeds} x {run.config.steps:,} steps on {device}, from {len(pilot.steps)} steps of a pilot (95 %)"
    rows = [(name, *_cells(bill)) for name, bill in parts.items()]
    whole = [None, ("all", *_cells(reduce(operator.add, parts.values())))] if len(parts) > 1 else []
    numbers = ("hours", "GPU-hours", "judge calls", "USD")
    return tables.table(title, ("", *numbers), [*rows, *whole], numbers)


def _cells(bill: Bill) -> list[str]:
    return [tables.estimate(one) for one in (bill.hours, bill.gpu_hours, bill.judge_calls, bill.usd)]


def learnability(session: Session, seed: Seed = None) -> int:
    """Check before training that there is something to learn: do rollouts of one prompt get different rewards?

    It fails if the rewards give no gradient, or if the evaluation could not show what is learned. It needs the
    training's ticket and trains nothing. A live judge is asked about the episodes.
    """
    run = session.open({"pool.seed": seed})
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    quieten_models(run)
    from rc1_lib.forecast.learnability import run_learnability, summary_rows
    from rc1_lib.training.ppo_run import prepare

    with holding(run.workspace, "a check of learnability"), stages():
        found = run_learnability(prepare(run))
    gate = found.body["gate"]
    title = f"{found.body['takes']} rollouts of each prompt (95 %)"
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


def judge_cost(session: Session, seed: Seed = None) -> int:
    """Estimate what the judge will cost: calls, tokens and USD, by stage and by model.

    It builds the requests but sends nothing. The interval is wide until replies of the configured judge have been
    measured; `rc1 probe-scorer` does that with a few calls. With the local rubric, which is free, it shows only what
    live judges would cost.
    """
    run = session.open({"pool.seed": seed})
    from rc1_lib.forecast import judge_cost as forecast
    from rc1_lib.judge.providers import LIVE

    if not run.config.pays_judged_score:
        return end(session, Ending("done", f"no judge is called: {run.config.why_not_judged}"), {"stages": {}})
    data = forecast.shadow_and_takes(run)
    prompts, least = run.config.gates.reward_hacking.prompts, run.config.gates.reward_hacking.min_prompts
    whole = forecast.preflight_stages(forecast.one_sample(run, prompts), data, fresh=True)
    fewer = max(least, prompts // _SMALLER)
    smaller = forecast.preflight_stages(forecast.one_sample(run, fewer), data, fresh=True)
    variants = {f"{samples} sample{'s' * (samples > 1)}": [one * samples for one in whole] for samples in _SAMPLES}
    variants[f"{_SAMPLES[-1]}, attack on {fewer}"] = [one * _SAMPLES[-1] for one in smaller]
    market, shown = _market(forecast.token_rates(run, measured=False), variants)
    document: dict[str, Any] = {"exit_code": 0, "models": market}
    words = f"a preflight calls the judge {sum(one.calls for one in whole) * run.config.judge.samples:,} times"
    following = ""
    if run.config.judge.provider in LIVE:
        stages = forecast.preflight_stages(run, data)
        training = forecast.training_stages(run, data[1], 1, evaluate=True)
        document |= {"preflight": forecast.cost_body(run, stages), "training": forecast.cost_body(run, training)}
        session.show(*_by_stage(run, "a preflight", stages), *_by_stage(run, "then a training, at most", training))
        words = f"a preflight will call the judge {document['preflight']['all']['calls']:,} times"
        following = then(session, "probe-scorer", "--live")
    session.show(shown, "list prices change, and judge.prices overrides them; dates and sources: docs/judge-costs.md")
    return end(session, Ending("done", words, following=following), document)


def preflight_cost_agreed(session: Session, run: Run, rounds: int, *, calibrates: bool = True) -> bool:
    """Show what a live judge will cost in a preflight, or in a calibration if `rounds` is 0; see `_agreed`."""
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
    from rc1_lib.forecast.judge_cost import cost_of, token_rates
    from rc1_lib.judge.budget import prices_of
    from rc1_lib.judge.providers import whom

    prices, source = prices_of(run.config.judge)
    rates = token_rates(run)
    known = f"measured on {rates.measured} replies" if rates.measured else "bounds, no replies have been measured yet"
    numbers = ("calls", "stored", "tokens in", "out", "USD")

    def line(name: str, part: Sequence[Stage]) -> tuple[str, ...]:
        cost = cost_of(part, rates, prices)
        counts = (f"{cost.calls:,}", f"{cost.stored:,}" if cost.stored else "")
        usd = "unknown" if cost.usd is None else tables.estimate(cost.usd)
        return name, *counts, tables.rounded(cost.tokens_in.value), tables.rounded(cost.tokens_out.value), usd

    rows = [*(line(one.name, [one]) for one in stages), None, line("all", stages)]
    table = tables.table(f"{title}: {whom(run.config.judge)}", ("", *numbers), rows, numbers)
    return table, f"tokens: {known}; retries are not counted. Prices: {source}"


def _market(rates: TokenRates, variants: Mapping[str, Sequence[Stage]]) -> tuple[list[dict[str, Any]], Table]:
    """Return what variants of a preflight cost at list prices, as JSON and as a table."""
    from rc1_lib.forecast.judge_cost import cost_of
    from rc1_lib.judge.budget import price_list

    rows = [("calls", *(f"{sum(one.calls for one in part):,}" for part in variants.values())), None]
    found: list[dict[str, Any]] = []
    for one in price_list():
        costs = {name: cost_of(part, rates, one.prices) for name, part in variants.items()}
        known = {name: cost.usd for name, cost in costs.items() if cost.usd is not None}
        rows.append((one.model, *map(tables.estimate, known.values())))
        usd = {name: asdict(estimate) for name, estimate in known.items()}
        found.append({**asdict(one), "prices": one.prices.model_dump(), "usd": usd})
    return found, tables.table("USD of a preflight at list prices", ("model", *variants), rows, variants)
