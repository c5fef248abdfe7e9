"""`scorecache stat | invalidate | replay-bad`: the store of the judge's replies. Also the program `scorecache-cli`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from rc1_lib.cli.endings import Ending, Failure, again, end, then
from rc1_lib.cli.options import overrides
from rc1_lib.cli.progress import stages
from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.judge.calls import NOTICE

_DAMAGED = "keep a copy of the store, and do not rely on its costs: somebody changed the log after it was written"
_UNREADABLE = "see the reasons above; another model, or other instructions, may give replies in the required form"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `rc1 scorecache` with these arguments, and end the process with its exit code.

    Args:
        arguments: default: those of the process.
    """
    from rc1_lib.cli import main as rc1

    if arguments is None:
        sys.argv[1:1] = ["scorecache"]  # the log's first line and an interruption then say what `rc1 scorecache` would
        rc1()
    else:
        rc1(["scorecache", *arguments])


def stat(session: Session) -> int:
    """Show how many replies of the judge are stored, and what asking has cost so far."""
    run = session.open()
    from rc1_lib.judge.calls import AttemptOutcome
    from rc1_lib.judge.maintenance import store_path, survey

    found = survey(run)
    place = store_path(run)
    if not found["exists"]:
        session.show(str(place))
        words = "there is no store yet; the first scoring makes it"
        return end(session, Ending("done", words, following=then(session, "probe-scorer")), found)
    session.show(*[NOTICE] * found["test_double"], f"{place}, {found['bytes'] / 1e6:.1f} MB with its log")
    session.show(_replies_table(found["replies"]), _attempts_table(found["attempts"], found["total"]))
    session.show(*_sums(found))
    replies = sum(one["replies"] for one in found["replies"])
    bad = sum(one["replies"] for one in found["replies"] if one["outcome"] != AttemptOutcome.OK)
    failures = [Failure(f"the usage log is DAMAGED: {found['damage']}", _DAMAGED)] if found["damage"] else []
    words = f"{replies} replies stored, {bad} of them without scores"
    following = then(session, "scorecache replay-bad") if bad else ""
    return end(session, Ending("done", words, failures, following=following), found)


def invalidate(
    session: Session,
    spec: Annotated[str, typer.Option(help="Version of the judge's instructions whose replies are forgotten.")],
) -> int:
    """Forget the stored replies to one version of the judge's instructions; the usage log keeps its lines."""
    run = session.open()
    from rc1_lib.judge.maintenance import existing_store, specs_stored, store_path

    with existing_store(run) as store:
        specs = [] if store is None else specs_stored(store)
        count = 0 if store is None else store.invalidate(spec)
    document = {"spec": spec, "invalidated": count, "specs": specs}
    if spec not in specs:
        session.document(document)
        there = f"there are some to {', '.join(specs)}" if specs else "there are none at all"
        raise RC1Error(f"{store_path(run)}: holds no replies to the instructions '{spec}', {there}; 0 were forgotten")
    words = f"{count} replies to the instructions '{spec}' forgotten; they will be asked for again when needed"
    return end(session, Ending("done", words, following=then(session, "score")), document)


def replay_bad(
    session: Session,
    provider: Annotated[str | None, typer.Option(help="The judge (judge.provider, SCORER_PROVIDER).")] = None,
    model: Annotated[str | None, typer.Option(help="The model that is asked (judge.model).")] = None,
) -> int:
    """Ask the judge again where a stored reply holds no scores; replies of other settings are left alone."""
    run = session.open(overrides({"judge.provider": provider, "judge.model": model}))
    from rc1_lib.judge.budget import known_usd
    from rc1_lib.judge.judge import check_judge, open_judge, traffic_note
    from rc1_lib.judge.maintenance import Replay, existing_store, replay_bad, store_path

    with existing_store(run) as store, stages():
        if store is not None:
            check_judge(run)
        result = Replay(0, 0, [], None) if store is None else replay_bad(open_judge(run, store))
    judged = result.judged
    others = sum(other["replies"] for other in result.others)
    document = {
        "asked": result.asked,
        "fixed": result.fixed,
        "left": result.left,
        "others": result.others,
        "stopped": judged.stopped if judged else "",
        "calls": judged.calls if judged else 0,
        "usd": judged.usd if judged else 0.0,
        "test_double": bool(judged and judged.test_double),
    }
    if judged is None:
        session.show(f"{store_path(run)}")
    else:
        session.show(*[NOTICE] * judged.test_double)
        usd = known_usd(run.config.judge, judged.usd, judged.calls)
        session.show(f"{judged.calls} calls, {traffic_note(judged.traffic, usd)}")
        session.show(*_still_bad(judged.replies))
    if others:
        shown = ", ".join(f"{one['replies']} of {one['spec']} {one['model']}" for one in result.others)
        session.show(f"{others} bad replies of other settings or model versions were left alone: {shown}")
    if judged is not None and judged.stopped:
        print(f"rc1: the judge stopped: {judged.stopped}", file=sys.stderr)
    if judged is None:
        words = "no bad replies of the judge as it is configured; no calls were made"
    else:
        words = f"{result.asked} bad replies: {result.fixed} fixed, {result.left} left"
    if not result.left:
        return end(session, Ending("pass", words), document)
    failures = [Failure(judged.stopped or f"{result.left} replies hold no scores still", _UNREADABLE)] if judged else []
    following = again(session, "scorecache replay-bad")
    return end(session, Ending("fail", words, failures, following=following), document)


def _still_bad(replies: Any) -> list[str]:
    """List why replies are still bad, the most frequent reason first."""
    from rc1_lib.judge.calls import AttemptOutcome

    counts = replies.filter(replies["outcome"] != AttemptOutcome.OK)["reason"].value_counts(sort=True)
    return [f"    {count}: {reason}" for reason, count in counts.iter_rows()]


def _replies_table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="stored replies", title_justify="left")
    table.add_column("spec", overflow="fold")
    table.add_column("model", overflow="fold")
    table.add_column("outcome", no_wrap=True)
    for head in ("replies", "expired", "oldest", "newest"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in records:
        ages = (_age(one[key]) for key in ("oldest_days", "newest_days"))
        table.add_row(
            Text(one["spec"]), Text(one["model"]), one["outcome"], str(one["replies"]), str(one["expired"]), *ages
        )
    return table


def _age(days: float) -> str:
    """Format an age in days, or in the largest smaller unit that gives at least one."""
    amount = days
    for unit, times in (("d", 24), ("h", 60), ("min", 60)):
        if amount >= 1:
            return f"{amount:.1f} {unit}"
        amount *= times
    return f"{amount:.0f} s"


def _attempts_table(records: Sequence[Mapping[str, Any]], total: Mapping[str, Any]) -> Table:
    table = Table(title="attempts in the usage log, replays not counted", title_justify="left")
    for head in ("outcome", "attempts", "retries", "tokens in", "tokens out", "USD known", "cost unknown"):
        table.add_column(head, justify="left" if head == "outcome" else "right", no_wrap=True)
    for place, one in enumerate((*records, {"outcome": "total", **total}), 1):
        counts = (str(one[key]) for key in ("lines", "retries", "tokens_in", "tokens_out"))
        unknown = str(one["cost_unknown"])
        table.add_row(one["outcome"], *counts, f"{one['usd']:.4f}", unknown, end_section=place == len(records))
    return table


def _sums(found: Mapping[str, Any]) -> list[str]:
    rate = "no score was given yet" if found["hit_rate"] is None else f"hit rate {100 * found['hit_rate']:.1f} %"
    lines = [f"{found['replays']} scores replayed from the store, at no cost; {rate}"]
    if found["total"]["cost_unknown"]:
        unknown = found["total"]["cost_unknown"]
        lines.append(f"{unknown} attempts of unknown cost: they may have been billed, or judge.prices was not set")
    for other in found["others"]:
        lines.append(
            f"{other['path']}: {other['calls']} attempts more, ${other['usd']:.4f}, {other['cost_unknown']} unknown"
        )
    damage = found["damage"]
    return [*lines, f"the usage log is DAMAGED: {damage}" if damage else "the usage log is intact"]
