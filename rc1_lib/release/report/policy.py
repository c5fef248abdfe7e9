"""How training went, and how the policy changed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from rc1_lib.evaluation.episodes import MODES
from rc1_lib.evaluation.gate import CHECK_OF
from rc1_lib.evaluation.metrics import LUCKY
from rc1_lib.evaluation.paired import OVERCLAR_DROP
from rc1_lib.plots.page import Chart, draw, lines, pairs
from rc1_lib.plots.training import MEDIAN_OF, panels_of
from rc1_lib.records import GateResult
from rc1_lib.release.report.html import Cell, Section, Table, Text, Tile, checks_table, figures_table
from rc1_lib.release.report.shapes import CURVE
from rc1_lib.release.report.sources import (
    Citation,
    Source,
    Sources,
    interval,
    is_number,
    percent,
    plain,
    points,
    shown,
    three,
    two,
)
from rc1_lib.task_specs import task_spec
from rc1_lib.training.run_paths import paths_of

_BEFORE_AFTER = (("old", "before"), ("new", "after"))
_HEADLINES = {
    "success_needed": "Success where asking is needed", "right_needed": "Right where asking is needed",
    "success_hard": "Success on hard rows",
    "ask_recall": "Asks where needed", "overclar_rate": "Asks where nothing is missing",
    "ask_precision": "Questions that were needed", "turns": "Turns of a dialogue",
}  # fmt: skip
_GROUPS = {
    "success": "all prompts", "success_needed": "asking needed", "success_clear": "nothing missing",
    "success_hard": "hard, multi-hop",
}  # fmt: skip
_RIGHT = {
    "right": "all prompts", "right_needed": "asking needed", "right_clear": "nothing missing",
    "right_hard": "hard, multi-hop",
}  # fmt: skip
_ASKING = {"ask_recall": "recall", "ask_precision": "precision", "overclar_rate": "asks needlessly"}


def tiles(sources: Sources) -> list[Tile]:
    """Return the headline figures."""
    found = sources.evaluation()
    if found is None:
        return []
    passed = {check.name: check.passed for check in GateResult.from_report(found.at("gate")).checks}
    place = ("modes", "sampled", "overall")
    made = []
    for name, label in _HEADLINES.items():
        form, change = (two, two) if name == "turns" else (percent, points)
        before, after = (found.cite(form, *place, side, name, "value") for side in ("before", "after"))
        verdict = passed.get(CHECK_OF[OVERCLAR_DROP if name == "overclar_rate" else name])
        made.append(Tile(label, before, after, found.cite_interval(change, *place, "change", name), verdict))
    return made


def training(sources: Sources) -> Section:
    """Return the training curves, with bands if there are several seeds."""
    report = sources.training()
    runs = (report.at("runs") or []) if report else []
    logs = [
        sources.read(f"metrics-{one['seed']}", paths_of(sources.run, one["seed"]).metrics, shape=CURVE) for one in runs
    ]
    known = [log for log in logs if log is not None and log.body]
    if report is None or not known:
        lead = "Nothing was trained in this workspace: there is no report of a training."
        return Section("training", "Training", lead)
    band = f"band: {len(known)} seeds" if len(known) > 1 else "faint: each step"
    panels = panels_of({name for log in known for row in log.body for name in row})
    charts = [chart for name, title in panels.items() if (chart := _curve(name, title, known, band)) is not None]
    seconds = figures_table("Where the time went", ("stage", "seconds"), report, ("seconds",))
    last = [(str(one["seed"]), one["checkpoint"], one["sha256"]) for one in runs]
    ends = Table("Checkpoints", ("seed", "checkpoint", "SHA-256 of its manifest"), last)
    lead = f"Seeds {', '.join(str(one['seed']) for one in runs)}; strong: median of {MEDIAN_OF} steps, {band}."
    return Section("training", "Training", lead, charts, (ends, seconds))


def _curve(name: str, title: str, logs: Sequence[Source], band: str) -> Chart | None:
    rows = [{row["step"]: row[name] for row in log.body if is_number(row.get(name))} for log in logs]
    steps = sorted(set.intersection(*map(set, rows))) if rows else []
    if not steps:
        return None
    seeds = [[float(row[step]) for step in steps] for row in rows]
    mean = [fmean(values) for values in zip(*seeds, strict=True)]
    half = MEDIAN_OF // 2
    strong = [median(mean[max(0, place - half) : place + half + 1]) for place in range(len(mean))]
    caption = f"By step; {band}. Ends at {shown(strong[-1], three)}"
    key = "".join(letter if letter.isalnum() else "-" for letter in name)
    return draw(f"training-{key}", title, caption, lambda axes: lines(axes, steps, seeds, strong), 1.7)


def policy(sources: Sources) -> Section:
    """Return success, right answers and asking, before and after, by kind of prompt."""
    found, title = sources.evaluation(), "The policy, before and after"
    if found is None:
        return Section("policy", title, "The policy was not evaluated: no evaluation is named by a training.")
    compared = found.at("modes", "sampled")
    overall = compared["overall"]
    split = [(task_spec(name).label, one) for name, one in compared["by"]["task"].items()]
    split += list(compared["by"]["bucket"].items())
    confidence = overall["change"]["success"]["confidence"]
    caption = (
        f"On {overall['prompts']:,} held-out prompts, sampled; lines: {100 * confidence:g}\u00a0% bootstrap intervals"
    )
    precision = f"{caption}. Precision: of the prompts asked about, those that needed it"
    charts = (
        _pairs("success", "Success", caption, [(words, overall, name) for name, words in _GROUPS.items()]),
        _pairs("right", "Right answers", caption, [(words, overall, name) for name, words in _RIGHT.items()]),
        *(
            _pairs(f"{name}-split", f"{title} by task and difficulty", caption, [(*one, name) for one in split])
            for name, title in (("success", "Success"), ("right", "Right answers"))
        ),
        _pairs("asking", "When it asks", precision, [(words, overall, name) for name, words in _ASKING.items()]),
    )
    lead = (
        f"{found.at('before')} against {found.at('after')}, the same prompts, paired. An answer that is right without "
        f"asking for what was missing is no success."
    )
    checks = [(check.name, check) for check in GateResult.from_report(found.at("gate")).checks]
    gate = checks_table("The gate ppo_eval", found, "gate.checks", checks)
    figures = [
        figures_table(
            f"All figures, {mode}", ("figure", "before", "after", "change"), found,
            *(("modes", mode, "overall", side) for side in ("before", "after", "change")), words={"lucky": LUCKY},
        )
        for mode in MODES
    ]  # fmt: skip
    tables = (*figures, _without_asking(found), _by(found), gate)
    return Section("policy", title, lead, charts, tables, _dialogues(sources, found))


def _pairs(name: str, title: str, caption: str, rows: Sequence[tuple[str, Any, str]]) -> Chart:
    """Return a chart of pairs; each row has its label, what was compared, and the figure's name."""
    read = [(words, interval(of["before"][one]), interval(of["after"][one])) for words, of, one in rows]
    return draw(name, title, caption, lambda axes: pairs(axes, read), 0.55 + 0.32 * len(read), _BEFORE_AFTER)


def _by(found: Source) -> Table:
    rows: list[Sequence[Cell]] = []
    for kind in ("task", "bucket", "wording"):
        for name in found.at("modes", "sampled", "by", kind) or {}:
            place = ("modes", "sampled", "by", kind, name)
            sides = (
                found.cite_interval(percent, *place, side, figure)
                for figure in ("success", "right")
                for side in ("before", "after")
            )
            rows.append((f"{kind}: {name}", found.cite(plain, *place, "prompts"), *sides))
    head = ("group", "prompts", "success before", "success after", "right before", "right after")
    return Table("Success and right answers by group", head, rows)


def _without_asking(found: Source) -> Table:
    """Return how often the policies are right without asking where something is missing, next to chance."""
    places = {"all": (("overall",), ("chance", "overall"))}
    places |= {
        name: (("by", "task", name), ("chance", "by_task", name)) for name in found.at("modes", "sampled", "by", "task")
    }
    rows: list[Sequence[Cell]] = []
    for name, (place, chance) in places.items():
        sides = [
            found.cite_interval(percent, "modes", "sampled", *place, side, "lucky") for side in ("before", "after")
        ]
        rows.append((name, *sides, found.cite(percent, *chance)))
    return Table("Right without asking, where asking is needed", ("prompts", "before", "after", "chance"), rows)


def _dialogues(sources: Sources, found: Source) -> tuple[Text, ...]:
    if not isinstance(found.at("examples"), str):
        return ()
    text = sources.read("dialogues", f"{found.path.removesuffix('.json')}.examples.md")
    return () if text is None else (Text("Dialogues, before and after", text.body, Citation(text.path, text, "")),)
