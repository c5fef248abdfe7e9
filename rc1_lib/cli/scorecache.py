"""`scorecache stat | invalidate | replay-bad`: the store of the judge's replies. Also the program `scorecache-cli`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.endings import Ending, Failure, again, end, then
from rc1_lib.cli.options import Model, Provider
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.streams import visible
from rc1_lib.cli.tables import table
from rc1_lib.errors import RC1Error
from rc1_lib.judge.calls import AttemptOutcome

_UNREADABLE = "see the reasons above; another model or other instructions may give replies in the required form"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `rc1 scorecache` with these arguments (default: the process's) and exit with its code."""
    from rc1_lib.cli import main as rc1

    if arguments is None:
        sys.argv[1:1] = ["scorecache"]  # so that the log and the last lines name `rc1 scorecache`
        rc1()
    else:
        rc1(["scorecache", *arguments])


def stat(session: Session) -> int:
    """Show how many of the judge's replies are stored, and what they have cost so far."""
    run = session.open()
    from rc1_lib.judge.maintenance import store_path, survey

    found = survey(run)
    place = store_path(run)
    if not found["exists"]:
        session.show(str(place), *_sums(found))
        words = "there is no store yet; the first scoring makes it"
        return end(session, Ending("done", words), found)
    session.show(f"{place}, {found['bytes'] / 1e6:.1f} MB with its log")
    session.show(*_tables(found), *_sums(found))
    replies = sum(one["replies"] for one in found["replies"])
    bad = sum(one["replies"] for one in found["replies"] if one["outcome"] != AttemptOutcome.OK)
    words = f"{replies} replies stored, {bad} of them without scores"
    following = then(session, "scorecache replay-bad") if bad else ""
    return end(session, Ending("done", words, following=following), found)


def invalidate(
    session: Session,
    spec: Annotated[str, typer.Option(help="Version of the judge's instructions whose replies to delete.")],
) -> int:
    """Delete the replies to one version of the judge's instructions from every store; the usage logs stay."""
    run = session.open()
    from rc1_lib.judge.maintenance import forget_replies, store_path

    count, specs, skipped = forget_replies(run, spec)
    document = {"spec": spec, "invalidated": count, "specs": specs, "skipped": skipped}
    for one in skipped:
        session.show(f"not read: {one['path']}: {one['why']}")
    if spec not in specs:
        session.document(document)
        there = f"only to {', '.join(specs)}" if specs else "nor to any others"
        raise RC1Error(f"{store_path(run)}: has no replies to the instructions '{spec}', {there}; nothing was deleted")
    words = f"{count} replies to the instructions '{spec}' deleted; the judge will be asked again when needed"
    return end(session, Ending("done", words), document)


def replay_bad(
    session: Session,
    provider: Provider = None,
    model: Model = None,
) -> int:
    """Ask the judge again for every stored reply without scores; replies of other settings are left alone."""
    run = session.open({"judge.provider": provider, "judge.model": model}, remembered=True)
    from rc1_lib.judge.budget import known_usd
    from rc1_lib.judge.judge import check_judge, open_judge, traffic_note
    from rc1_lib.judge.maintenance import Replay, existing_store, replay_bad, store_path

    with existing_store(run) as store, stages():
        if store is not None:
            check_judge(run)
        result = Replay(0, 0, [], None) if store is None else replay_bad(open_judge(run, store))
    judged, stopped = result.judged, result.judged.stopped if result.judged else ""
    document = {
        **{name: getattr(result, name) for name in ("asked", "fixed", "left", "others")},
        "stopped": stopped,
        "calls": judged.calls if judged else 0,
        "usd": known_usd(run.config.judge, judged.usd, judged.calls) if judged else 0.0,
    }
    if judged is None:
        session.show(str(store_path(run)))
        words = "no bad replies of the judge as it is configured; no calls were made"
    else:
        usd = known_usd(run.config.judge, judged.usd, judged.calls)
        bad = judged.replies.filter(judged.replies["outcome"] != AttemptOutcome.OK)
        session.show(
            f"{judged.calls} calls, {traffic_note(judged.traffic, usd)}",
            *(f"    {count}: {reason}" for reason, count in bad["reason"].value_counts(sort=True).iter_rows()),
        )
        words = f"{result.asked} bad replies: {result.fixed} fixed, {result.left} left"
    if result.others:
        others = sum(other["replies"] for other in result.others)
        shown = ", ".join(f"{one['replies']} of {one['spec']} {one['model']}" for one in result.others)
        session.show(f"{others} bad replies of other settings or model versions were left alone: {shown}")
    if stopped:
        print(f"rc1: the judge stopped: {visible(str(stopped))}", file=sys.stderr)
    if not result.left:
        return end(session, Ending("pass", words), document)
    failures = [Failure(stopped or f"{result.left} replies still have no scores", _UNREADABLE)]
    following = again(session, "scorecache replay-bad")
    return end(session, Ending("fail", words, failures, following=following), document)


def _tables(found: Mapping[str, Any]) -> list[Table]:
    """Return a table of the stored replies, and one of the attempts in the usage log."""
    heads = ("spec", "model", "outcome", "replies", "expired")
    replies = [
        (*(one[head] for head in heads), _age(one["oldest_days"]), _age(one["newest_days"])) for one in found["replies"]
    ]
    keys = ("outcome", "lines", "retries", "tokens_in", "tokens_out")
    attempts = [
        (*(one[key] for key in keys), f"{one['usd']:.4f}", one["cost_unknown"])
        for one in (*found["attempts"], {"outcome": "total", **found["total"]})
    ]
    numbers = ("attempts", "retries", "tokens in", "tokens out", "USD known", "cost unknown")
    title = "attempts in the usage log, replays not counted"
    return [
        table("stored replies", (*heads, "oldest", "newest"), replies, (*heads[3:], "oldest", "newest")),
        table(title, ("outcome", *numbers), [*attempts[:-1], None, attempts[-1]], numbers),
    ]


def _age(days: float) -> str:
    """Format an age in days, or in the largest smaller unit that gives at least one."""
    amount = days
    for unit, times in (("d", 24), ("h", 60), ("min", 60)):
        if amount >= 1:
            return f"{amount:.1f} {unit}"
        amount *= times
    return f"{amount:.0f} s"


def _sums(found: Mapping[str, Any]) -> list[str]:
    rate = "no scores yet" if found["hit_rate"] is None else f"hit rate {100 * found['hit_rate']:.1f} %"
    lines = [f"{found['replays']} scores replayed from the store, at no cost; {rate}"]
    if found["total"]["cost_unknown"]:
        unknown = found["total"]["cost_unknown"]
        lines.append(f"{unknown} attempts of unknown cost: they may have been billed, or judge.prices was not set")
    lines += [
        f"{other['path']}: {other['calls']} more attempts, ${other['usd']:.4f}, {other['cost_unknown']} of unknown cost"
        for other in found["others"]
    ]
    lines += [f"{one['path']}: skipped: {one['why']}" for one in found["skipped"]]
    return lines
