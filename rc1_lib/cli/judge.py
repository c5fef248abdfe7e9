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


def judge_baseline(
    session: Session,
    new: Annotated[
        bool, typer.Option("--new", help="Record another one, asked anew, and keep the one that is there beside it.")
    ] = False,
) -> int:
    """Record the dialogues and first scores that the nightly compares the judge with, where there are none yet."""
    run = session.open()
    from rc1_lib.artifacts import FileState
    from rc1_lib.calibration.judge_baseline import JUDGE_BASELINE, record_baseline
    from rc1_lib.cli.stages import stages

    there = JUDGE_BASELINE.state(run) is FileState.FRESH
    with stages():
        body = record_baseline(run, new=new)
    done = "unchanged" if there and not new else "recorded"
    judge = " ".join(part for part in (body["judge"]["provider"], body["judge"]["model"]) if part)
    session.show(f"{len(body['dialogues'])} dialogues, judge {judge}, {body['recorded']}, {done}")
    if new and (old := body["replaces"]):
        session.show(
            f"a new baseline: it replaces that of {old['recorded']}, kept as {run.workspace.path(old['path'])}",
            "a ticket that vouches for the old one is refused from now on: rc1 preflight issues another",
        )
    session.show(f"baseline: {JUDGE_BASELINE.path(run)}")
    head = {name: body[name] for name in ("recorded", "judge", "models", "replaces")}
    session.document(
        {**head, "dialogues": len(body["dialogues"]), "path": run.config.judge.baseline.path, "done": done}
    )
    return 0


def judge_drift(session: Session) -> int:
    """Ask the judge about the baseline's dialogues again, past the cache, and check that it grades as it did.

    A waiver of the preflight does not apply here: whoever asks gets the verdict.
    """
    run = session.open(overrides({"gates.waivers": {}}))
    from rc1_lib.cli.stages import stages
    from rc1_lib.evidence import Evidence
    from rc1_lib.preflight.gates import NIGHTLY, evaluate

    with stages():
        results = [evaluate("judge_drift", Evidence(run), NIGHTLY)]
    return conclude(session, run, f"judge {run.config.judge.provider}", results, "reports/rc1/judge_drift.json")


def assert_not_simulated(
    session: Session,
    cache_hit_lt: Annotated[
        float | None, typer.Option(help="Share of cached scores that is refused from here on, in either round.")
    ] = None,
) -> int:
    """Check that the last scorings were real: billed, slower than nothing, and not all from the cache.

    A waiver of the preflight does not apply here: whoever asks gets the verdict.
    """
    flags: dict[str, Any] = {
        "gates.anti_simulation.cache_hit_lt.round1": cache_hit_lt,
        "gates.anti_simulation.cache_hit_lt.round2": cache_hit_lt,
        "gates.waivers": {},
    }
    run = session.open(overrides(flags))
    results = judge(session, run, ("anti_simulation",))
    return conclude(session, run, "anti-simulation", results, "reports/rc1/assert_not_simulated.json")
