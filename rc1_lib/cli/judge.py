"""`probe-scorer`, `assert-not-simulated` and `score`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.check_words import gate_sentence
from rc1_lib.cli.endings import Ending, again, end, then
from rc1_lib.cli.options import Model, Provider
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.tables import table
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import ConfigError, RC1Error

if TYPE_CHECKING:
    from rc1_lib.records import GateResult
    from rc1_lib.run import Run


def probe_scorer(
    session: Session,
    n: Annotated[int | None, typer.Option(help="Dialogues to score (gates.probe.n).")] = None,
    provider: Provider = None,
    model: Model = None,
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
    run = session.open(flags)
    from rc1_lib.evidence import Evidence
    from rc1_lib.gates.gate_list import evaluate
    from rc1_lib.judge.providers import whom

    built = run.workspace.path(run.config.shadow.path).exists()
    asked = run.config.shadow.path if built else "RC1's own dialogues"
    with stages():
        result = evaluate("judge_probe", Evidence(run), 1) if built else _probed_on_own(run)
    _check_judged([result])
    about = "" if result.error else f"asked about {run.config.gates.probe.n} of {asked}: "
    session.show(about + whom(run.config.judge))
    document = {"asked_about": asked, "whom": whom(run.config.judge)}
    return conclude(
        session, run, f"judge {run.config.judge.provider}", [result], "reports/rc1/probe_scorer.json", document,
        after_fail=again(session, "probe-scorer"),
    )  # fmt: skip


def _check_judged(results: Sequence[GateResult]) -> None:
    """Reject a gate without a verdict: a command that asks whether a judge is there must not pass without asking."""
    from rc1_lib.records import Status

    for one in results:
        if one.status in (Status.NOT_APPLICABLE, Status.WAIVED):
            raise ConfigError(f"{one.name}, {gate_sentence(one)}: nobody was asked; leave out the setting that says so")


def _probed_on_own(run: Run) -> GateResult:
    """Probe the judge with the dialogues that RC1 ships.

    Raises:
        ConfigError: when more of them are asked for than there are.
    """
    from rc1_lib.gates.judge_probe import probe_on
    from rc1_lib.judge.score_files import probe_dialogues
    from rc1_lib.records import GateResult

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


def assert_not_simulated(
    session: Session,
    cache_hit_lt: Annotated[
        float | None, typer.Option(help="Fail at this share of cached scores or more, in both rounds.")
    ] = None,
) -> int:
    """Check that the latest scores came from a real judge: billed, not instant, and not all from the cache.

    Waivers of the preflight do not apply here.
    """
    flags: dict[str, Any] = {
        "gates.anti_simulation.cache_hit_lt.round1": cache_hit_lt,
        "gates.anti_simulation.cache_hit_lt.round2": cache_hit_lt,
        "gates.waivers": {},
    }
    run = session.open(flags)
    results = judge(session, run, ("anti_simulation",))
    _check_judged(results)
    return conclude(
        session, run, "anti-simulation", results, "reports/rc1/assert_not_simulated.json",
        after_fail=then(session, "probe-scorer", "--live", when="to see who answers"),
    )  # fmt: skip


def score(
    session: Session,
    rows: Annotated[
        Path | None,
        typer.Option("--in", help="JSONL file with one dialogue's messages per line. Default: the shadow set."),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Score the first N of them.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the scores to this file. Default: reports/rc1/scores.jsonl.")
    ] = None,
    provider: Provider = None,
    model: Model = None,
    samples: Annotated[int | None, typer.Option(help="Replies per dialogue (judge.samples).")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask about every dialogue, even if replies are stored.")
    ] = False,
) -> int:
    """Score dialogues with the judge. Replies are stored, so an interrupted run continues where it stopped."""
    given, target = session.given(rows), session.report("--out", out, ("dialogue", "medians", "variances"))
    run = session.open({"judge.provider": provider, "judge.model": model, "judge.samples": samples})
    from rc1_lib.judge.budget import known_usd
    from rc1_lib.judge.judge import check_judge, open_judge, open_store, traffic_note
    from rc1_lib.judge.score_files import SCORES, read_dialogues, summary_path, write_scores

    if target is not None:
        session.report("--out", Path(summary_path(target)), ("scores", "spec_sha256"))  # the summary, next to it
    source = run.workspace.path(given or run.config.shadow.path)
    if given is None and not source.exists():
        raise RC1Error(f"{source}: there is no shadow set yet; run `rc1 build-pool`, or name a file with --in")
    dialogues = read_dialogues(source, n)
    check_judge(run)
    with open_store(run) as store:
        judge = open_judge(run, store)
        with stages():
            judged = judge.score([one.messages for one in dialogues], fresh=fresh)
        summary = write_scores(run, judge, dialogues, judged, target or SCORES)
    written = run.workspace.path(summary["scores"])
    usd = known_usd(run.config.judge, judged.usd, judged.calls)
    session.show(
        _table(summary),
        *_sentences(summary),
        f"{judged.calls} calls, {traffic_note(judged.traffic, usd)}",
        f"scores: {written}",
    )
    if summary["unstable_samples"]:
        session.show(f"unstable samples: {run.workspace.path(summary['unstable_samples'])}")
    if not summary["complete"]:
        session.document(summary)
        raise RC1Error(f"{summary['incomplete']}. {written} is marked incomplete; replies already paid for are kept")
    words = f"{summary['scored']} of {summary['dialogues']} dialogues scored"
    place = run.workspace.path(summary_path(summary["scores"]))
    return end(session, Ending("done", words, report=place), summary)


def _table(summary: Mapping[str, Any]) -> Table:
    title = f"{summary['provider']} {summary['model_asked']}, instructions {summary['spec']}"
    if not summary["complete"]:
        title += ", INCOMPLETE: covers only dialogues with scores, so not reliable"
    rows: list[tuple[str, ...] | None] = []
    for name, one in summary["dimensions"].items():
        bounds = "-" if one["sd"] is None else f"{one['sd_low']:.4f} to {one['sd_high']:.4f}"
        rows.append((name, _figure(one["mean_of_medians"]), _figure(one["sd"]), bounds))
    numbers = ("mean of medians", "sd between samples", f"its {100 * summary['confidence']:g} % interval")
    return table(title, ("dimension", *numbers), [*rows[:-1], None, *rows[-1:]], numbers)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _sentences(summary: Mapping[str, Any]) -> list[str]:
    models = "" if not summary["models"] else f", answered by {', '.join(summary['models'])}"
    lines = [
        f"{summary['scored']} of {summary['dialogues']} dialogues scored ({100 * summary['coverage']:.1f} %), "
        f"{summary['samples']} samples each{models}",
        f"{summary['unstable']} unstable, {summary['straddling']} with samples on both sides of the verdict; "
        f"{summary['replayed']} replies replayed from the store at no cost",
    ]
    return lines + [f"    unscored, {one['dialogues']}: {one['reason']}" for one in summary["reasons"][:5]]
