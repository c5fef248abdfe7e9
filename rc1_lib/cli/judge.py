"""`probe-scorer` and `assert-not-simulated`: is somebody really scoring."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rc1_lib.cli.options import overrides
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge


def probe_scorer(
    session: Session,
    n: Annotated[int | None, typer.Option(help="Dialogues to score (gates.probe.n).")] = None,
    provider: Annotated[str | None, typer.Option(help="The judge (judge.provider, SCORER_PROVIDER).")] = None,
    model: Annotated[str | None, typer.Option(help="The provider's name of the model (judge.model).")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Demand that somebody was billed (gates.probe.require_billed).")
    ] = False,
) -> int:
    """Score a few dialogues of the shadow set, past the cache, and check that the judge really answered."""
    flags = {
        "gates.probe.n": n,
        "judge.provider": provider,
        "judge.model": model,
        "gates.probe.require_billed": True if live else None,
    }
    run = session.open(overrides(flags))
    from rc1_lib.cli.stages import stages
    from rc1_lib.evidence import Evidence
    from rc1_lib.preflight.gates import evaluate

    with stages():
        results = [evaluate("judge_probe", Evidence(run), 1)]
    return conclude(session, run, f"judge {run.config.judge.provider}", results, "reports/rc1/probe_scorer.json")


def assert_not_simulated(
    session: Session,
    cache_hit_lt: Annotated[
        float | None, typer.Option(help="Share of cached scores that is refused from here on, in either round.")
    ] = None,
) -> int:
    """Check that the last scorings were real: billed, slower than nothing, and not all from the cache.

    A waiver of the preflight is not heeded here: whoever asks is told.
    """
    flags: dict[str, Any] = {
        "gates.anti_simulation.cache_hit_lt.round1": cache_hit_lt,
        "gates.anti_simulation.cache_hit_lt.round2": cache_hit_lt,
        "gates.waivers": {},
    }
    run = session.open(overrides(flags))
    results = judge(session, run, ("anti_simulation",))
    return conclude(session, run, "anti-simulation", results, "reports/rc1/assert_not_simulated.json")
