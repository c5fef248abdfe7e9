"""How training went, and what the policy does now that it did not do before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.evaluation.gate import CHECK_OF
from rc1_lib.evaluation.paired import OVERCLAR_DROP
from rc1_lib.plots.page import Chart, draw, lines, pairs
from rc1_lib.plots.training import panels_of
from rc1_lib.release.report.html import Cell, Section, Table, Text, Tile
from rc1_lib.release.report.shapes import CURVE
from rc1_lib.release.report.sources import (
    Citation,
    Source,
    Sources,
    interval,
    is_number,
    json_lines,
    percent,
    plain,
    points,
    said,
    shown,
    three,
    two,
)
from rc1_lib.task_specs import task_spec
from rc1_lib.training.run_paths import paths_of

_BEFORE_AFTER = (("old", "before"), ("new", "after"))
_HEADLINES = {
    "success_needed": "Success where asking is needed", "success_hard": "Success on hard rows",
    "ask_recall": "Asks where needed", "overclar_rate": "Asks where nothing is missing",
    "ask_precision": "Questions that were needed", "turns": "Turns of a dialogue",
}  # fmt: skip
_GROUPS = {
    "success": "all prompts", "success_needed": "asking needed", "success_clear": "nothing missing",
    "success_hard": "hard, multi-hop",
}  # fmt: skip
_ASKING = {"ask_recall": "recall", "ask_precision": "precision", "overclar_rate": "asks needlessly"}
_MEDIAN_OF = 5


def evaluation_of(sources: Sources) -> Source | None:
    """Read the evaluation that the training's report names; None if there is none."""
    training = sources.read("training", sources.run.workspace.path("reports/train.json"))
    if training is None or not isinstance(training.at("evaluation"), str):
        return None
    return sources.read("evaluation", EVALUATION.path(sources.run))


def tiles(sources: Sources) -> list[Tile]:
    """Return the figures that a reader wants to know first."""
    found = evaluation_of(sources)
    if found is None:
        return []
    passed = {check["name"]: check["passed"] for check in found.at("gate", "checks") or []}
    place = ("modes", "sampled", "overall")
    made = []
    for name, label in _HEADLINES.items():
        form, change = (two, two) if name == "turns" else (percent, points)
        made.append(
            Tile(
                label,
                found.cite(form, *place, "before", name, "value"),
                found.cite(form, *place, "after", name, "value"),
                found.cite_interval(change, *place, "change", name),
                passed.get(CHECK_OF[OVERCLAR_DROP if name == "overclar_rate" else name]),
            )
        )
    return made


def training(sources: Sources) -> Section:
    """The curves, with bands where there is more than one seed."""
    report = sources.read("training", sources.run.workspace.path("reports/train.json"))
    seeds = [one["seed"] for one in report.at("runs") or []] if report else []
    logs = [
        sources.read(
            f"metrics-{seed}", sources.run.workspace.path(paths_of(sources.run, seed).metrics), json_lines, CURVE
        )
        for seed in seeds
    ]
    known = [log for log in logs if log is not None and log.body]
    if report is None or not known:
        return Section(
            "training", "Training", "Nothing was trained in this workspace: there is no report of a training."
        )
    band = f"band: {len(known)} seeds" if len(known) > 1 else "faint: each step"
    panels = panels_of({name for log in known for row in log.body for name in row})
    charts = [chart for name, title in panels.items() if (chart := _curve(name, title, known, band)) is not None]
    seconds = Table(
        "Where the time went", ("stage", "seconds"),
        [(stage, report.cite(plain, "seconds", stage)) for stage in report.at("seconds") or {}],
    )  # fmt: skip
    ends = Table("Checkpoints", ("seed", "checkpoint", "SHA-256 of its manifest"), [
        (str(one["seed"]), one["checkpoint"], one["sha256"]) for one in report.at("runs")
    ])  # fmt: skip
    lead = f"Seeds {', '.join(map(str, seeds))}; strong: median of {_MEDIAN_OF} steps, {band}."
    return Section("training", "Training", lead, charts, (ends, seconds))


def _curve(name: str, title: str, logs: Sequence[Source], band: str) -> Chart | None:
    rows = [{row["step"]: row[name] for row in log.body if is_number(row.get(name))} for log in logs]
    steps = sorted(set.intersection(*map(set, rows))) if rows else []
    if not steps:
        return None
    seeds = [[float(row[step]) for step in steps] for row in rows]
    mean = [fmean(values) for values in zip(*seeds, strict=True)]
    half = _MEDIAN_OF // 2
    strong = [median(mean[max(0, place - half) : place + half + 1]) for place in range(len(mean))]
    caption = f"By step; {band}. Ends at {shown(strong[-1], three)}"
    key = "".join(letter if letter.isalnum() else "-" for letter in name)
    return draw(f"training-{key}", title, caption, lambda axes: lines(axes, steps, seeds, strong), 1.7)


def policy(sources: Sources) -> Section:
    """Success and asking, before and after, by what the prompts are like."""
    found = evaluation_of(sources)
    if found is None:
        return Section(
            "policy",
            "The policy, before and after",
            "The policy was not evaluated: no evaluation is named by a training.",
        )
    compared = found.at("modes", "sampled")
    overall = compared["overall"]
    groups = [(words, overall["before"][name], overall["after"][name]) for name, words in _GROUPS.items()]
    by_task = [(task_spec(name).label, one) for name, one in compared["by"]["task"].items()]
    split = [(label, one["before"]["success"], one["after"]["success"]) for label, one in by_task]
    split += [
        (name, one["before"]["success"], one["after"]["success"]) for name, one in compared["by"]["bucket"].items()
    ]
    asking = [(words, overall["before"][name], overall["after"][name]) for name, words in _ASKING.items()]
    confidence = overall["change"]["success"]["confidence"]
    caption = (
        f"On {overall['prompts']:,} held-out prompts, sampled; lines: {100 * confidence:g}\u00a0% bootstrap intervals"
    )
    charts = (
        _pairs("success", "Success", caption, groups),
        _pairs("success-split", "Success by task and difficulty", caption, split),
        _pairs(
            "asking", "When it asks", f"{caption}. Precision: of the prompts asked about, those that needed it", asking
        ),
    )
    lead = (
        f"{found.at('before')} against {found.at('after')}, the same prompts, paired. A lucky guess of a missing piece "
        f"is no success."
    )
    tables = (_figures(found, "sampled"), _figures(found, "greedy"), _by(found), _gate(found))
    return Section("policy", "The policy, before and after", lead, charts, tables, _dialogues(sources, found))


def _pairs(name: str, title: str, caption: str, rows: Sequence[tuple[str, Any, Any]]) -> Chart:
    read = [(label, interval(before), interval(after)) for label, before, after in rows]
    return draw(name, title, caption, lambda axes: pairs(axes, read), 0.55 + 0.32 * len(read), _BEFORE_AFTER)


def _figures(found: Source, mode: str) -> Table:
    place = ("modes", mode, "overall")
    names = (found.at(*place, "before") or {}).keys()
    rows: list[Sequence[Cell]] = [
        (
            name.replace("_", " "),
            *(found.cite_interval(plain, *place, side, name) for side in ("before", "after", "change")),
        )
        for name in names
    ]
    return Table(f"All figures, {mode}", ("figure", "before", "after", "change"), rows)


def _by(found: Source) -> Table:
    rows: list[Sequence[Cell]] = []
    for kind in ("task", "bucket", "wording"):
        for name in found.at("modes", "sampled", "by", kind) or {}:
            place = ("modes", "sampled", "by", kind, name)
            rows.append(
                (
                    f"{kind}: {name}", found.cite(plain, *place, "prompts"),
                    *(found.cite_interval(percent, *place, side, "success") for side in ("before", "after")),
                )
            )  # fmt: skip
    return Table("Success by group", ("group", "prompts", "before", "after"), rows)


def _gate(found: Source) -> Table:
    return checks_table("The gate ppo_eval", found.at("gate", "checks") or [], found)


def checks_table(title: str, checks: Sequence[Mapping[str, Any]], source: Source, opened: bool = False) -> Table:
    """Checks with value, threshold and verdict."""
    rows: list[Sequence[Cell]] = [
        (
            str(check["name"]),
            Citation(said(check["value"]), source, f"gate.checks[{number}]"),
            "" if check["op"] == "info" else f"{check['op']} {said(check['threshold'])}",
            "for information" if check["op"] == "info" else "passed" if check["passed"] else "RED",
        )
        for number, check in enumerate(checks)
    ]
    return Table(title, ("check", "value", "wanted", "verdict"), rows, opened)


def _dialogues(sources: Sources, found: Source) -> tuple[Text, ...]:
    named = found.at("examples")
    path = sources.run.workspace.path(f"{found.path.removesuffix('.json')}.examples.md")
    if not isinstance(named, str):
        return ()
    text = sources.text("dialogues", path)
    return () if text is None else (Text("Dialogues, before and after", text.body, Citation(text.path, text, "")),)
