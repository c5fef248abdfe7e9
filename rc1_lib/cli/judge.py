"""`probe-scorer` and `assert-not-simulated`: is somebody really scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.following import again, then
from rc1_lib.cli.options import overrides
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import ConfigError, RC1Error

if TYPE_CHECKING:
    from rc1_lib.records import GateResult
    from rc1_lib.run import Run


def probe_scorer(
    session: Session,
    n: Annotated[int | None, typer.Option(help="Dialogues to score (gates.probe.n).")] = None,
    provider: Annotated[str | None, typer.Option(help="The judge (judge.provider, SCORER_PROVIDER).")] = None,
    model: Annotated[str | None, typer.Option(help="The provider's name of the model (judge.model).")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Demand that somebody was billed (gates.probe.require_billed).")
    ] = False,
) -> int:
    """Ask the judge about a few dialogues, never from the cache, and check that it really answered.

    The dialogues are the shadow set's first ones; where there is no shadow set yet, eight small ones that RC1 ships.
    """
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

    title, following = f"judge {run.config.judge.provider}", then(session, "preflight")
    with stages():
        if run.workspace.path(run.config.shadow.path).exists():
            asked, result = run.config.shadow.path, evaluate("judge_probe", Evidence(run), 1)
        else:
            asked, result = "RC1's own dialogues", _probed_on_own(run)
    session.show(f"asked about {run.config.gates.probe.n} of {asked}")
    return conclude(
        session, run, title, [result], "reports/rc1/probe_scorer.json", {"asked_about": asked},
        after_pass=following, after_fail=again(session, "probe-scorer"),
    )  # fmt: skip


def _probed_on_own(run: Run) -> GateResult:
    """The probe on the dialogues that RC1 ships.

    Raises:
        ConfigError: when more of them are asked for than there are.
    """
    from rc1_lib.preflight.judge_gates import probe_on
    from rc1_lib.records import GateResult
    from rc1_lib.scoring.probe_dialogues import probe_dialogues

    own, wanted = probe_dialogues(), run.config.gates.probe.n
    if wanted > len(own):
        raise ConfigError(
            f"--n {wanted} (gates.probe.n): {run.workspace.path(run.config.shadow.path)} is not there yet, and RC1 "
            f"ships {len(own)} dialogues for a probe; give at most {len(own)}, or run rc1 build-pool first"
        )
    try:
        return probe_on(run, own[:wanted])
    except RC1Error as error:  # as in a round: a judge that cannot be asked is a verdict
        return GateResult("judge_probe", error=str(error))


def judge_baseline(
    session: Session,
    new: Annotated[
        bool, typer.Option("--new", help="Ask the judge again, record another baseline, and keep the old one.")
    ] = False,
) -> int:
    """Record the judge's first scores of some dialogues, with which the nightly compares it later."""
    run = session.open()
    from rc1_lib.calibration.judge_baseline import JUDGE_BASELINE, record_baseline
    from rc1_lib.cli.stages import stages
    from rc1_lib.workspace.artifacts import FileState

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
    words = f"baseline of {len(body['dialogues'])} dialogues, {done}"
    following = then(session, "preflight") if new and body["replaces"] else then(session, "judge-drift")
    show_ending(session, Ending("done", words, following=following))
    head = {name: body[name] for name in ("recorded", "judge", "models", "replaces")}
    session.document(
        {**head, "dialogues": len(body["dialogues"]), "path": run.config.judge.baseline.path, "done": done}
    )
    return 0


def judge_drift(session: Session) -> int:
    """Ask the judge about the baseline's dialogues again, and check that it grades as it did.

    A waiver of the preflight does not apply here: whoever asks gets the verdict.
    """
    run = session.open(overrides({"gates.waivers": {}}))
    from rc1_lib.cli.stages import stages
    from rc1_lib.evidence import Evidence
    from rc1_lib.preflight.gates import NIGHTLY, evaluate

    with stages():
        results = [evaluate("judge_drift", Evidence(run), NIGHTLY)]
    return conclude(
        session, run, f"judge {run.config.judge.provider}", results, "reports/rc1/judge_drift.json",
        after_fail=then(session, "judge-baseline", "--new", when="if this judge is to stay"),
    )  # fmt: skip


def assert_not_simulated(
    session: Session,
    cache_hit_lt: Annotated[
        float | None, typer.Option(help="Share of cached scores that is refused from here on, in either round.")
    ] = None,
) -> int:
    """Check that the last scores came from a real judge: billed, not instant, and not all from the cache.

    A waiver of the preflight does not apply here: whoever asks gets the verdict.
    """
    flags: dict[str, Any] = {
        "gates.anti_simulation.cache_hit_lt.round1": cache_hit_lt,
        "gates.anti_simulation.cache_hit_lt.round2": cache_hit_lt,
        "gates.waivers": {},
    }
    run = session.open(overrides(flags))
    results = judge(session, run, ("anti_simulation",))
    return conclude(
        session, run, "anti-simulation", results, "reports/rc1/assert_not_simulated.json",
        after_pass=then(session, "preflight"),
        after_fail=then(session, "probe-scorer", "--live", when="to see who answers"),
    )  # fmt: skip
