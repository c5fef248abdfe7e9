"""Whether the calibrated reward predicts success better than the baseline, and how adversarial policies fare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.errors import RC1Error
from rc1_lib.plots.page import Chart, dots, draw, reliability, scatter
from rc1_lib.provenance.derived import Artifact
from rc1_lib.release.report.gates import gate_checks
from rc1_lib.release.report.html import Cell, Section, Table, figures_table
from rc1_lib.release.report.sources import Source, Sources, dollars, interval, percent, plain, two
from rc1_lib.release.verifier import fault_of_name

_BINS = 8
_RANKS = ("rank by old score", "rank by new reward")
_OLD_NEW = (("old", "old score"), ("new", "new reward"))


def calibration_of(sources: Sources) -> Source | None:
    """Return the calibration that the current weights name, or else the newest one."""
    weights = sources.read("weights", sources.run.config.weights)
    named = weights.at("report", "path") if weights else None
    if isinstance(named, str) and not fault_of_name(named):
        return sources.read("calibration", named)
    # Their names contain the time, so the last one is the newest.
    found = sorted(sources.run.workspace.path("reports").glob("calibration_report_*[0-9].json"))
    return sources.read("calibration", found[-1]) if found else None


def reward(sources: Sources) -> Section:
    """Return the weights with intervals, the ranks by baseline and calibrated reward, and reliability."""
    calibration = calibration_of(sources)
    shadow = sources.read("shadow-run", "reports/shadow_run_pre_run_check.json")
    terms = sources.read("shadow-terms", "reports/shadow_run_pre_run_check.rows.jsonl")
    if calibration is None and shadow is None:
        nothing = "Nothing was calibrated in this workspace, so there is nothing to show"
        why = sources.run.config.why_not_judged or nothing
        return Section("reward", "The judged score", f"{why[:1].upper()}{why[1:]}.")
    charts = [_weights(calibration)] if calibration else []
    charts += _ranks(terms.body) if terms else []
    title = "Old score against new reward, on the shadow set"
    tables = [figures_table(title, ("figure", "value, with interval"), shadow, ("figures",))] if shadow else []
    lead = "Weights are fitted to success, then compared with the old score on held-out dialogues."
    return Section("reward", "The reward", lead, charts, tables)


def _weights(found: Source) -> Chart:
    names = list(found.at("weights"))
    spans = found.at("calibration", "intervals") or {}
    read = [(name, interval(spans.get(f"weight.{name}") or {"value": found.at("weights", name)})) for name in names]
    rows = [(name, span) for name, span in read if span is not None]
    others = [(found.at("old_weights") or {}).get(name) for name in names]
    caption = "Lines: bootstrap intervals. Hollow: the old score's weights"
    return draw(
        "weights", "Weights of the dimensions", caption, lambda axes: dots(axes, rows, others), 0.5 + 0.24 * len(rows),
        (("old", "old"), ("new", "calibrated")),
    )  # fmt: skip


def _ranks(rows: Sequence[dict[str, Any]]) -> list[Chart]:
    known = [row for row in rows if isinstance(row.get("old"), float) and isinstance(row.get("reward"), float)]
    if len(known) < 2:
        return []
    old, new = (_rank([row[name] for row in known]) for name in ("old", "reward"))
    good = [bool(row["solved"]) for row in known]
    caption = f"{len(known):,} shadow dialogues, in percent of ranks. Filled: solved, hollow: not"
    bins = {name: _bins([(row[name], row["solved"]) for row in known]) for name in ("old", "reward")}
    return [
        draw("ranks", "Ranks, old and new", caption, lambda axes: scatter(axes, old, new, good, _RANKS), 3.0),
        draw(
            "reliability", "Is a higher score more often a success?",
            f"{len(known):,} shadow dialogues in {_BINS} bins of equal counts",
            lambda axes: reliability(axes, bins["reward"], bins["old"]), 2.3, _OLD_NEW,
        ),
    ]  # fmt: skip


def _rank(values: Sequence[float]) -> list[float]:
    """Return mean ranks, as percentages."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order)))}
    last = {value: place for place, value in enumerate(order)}
    return [50.0 * (first[value] + last[value]) / (len(values) - 1) for value in values]


def _bins(rows: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    ordered = sorted(rows)
    edges = [len(ordered) * number // _BINS for number in range(_BINS + 1)]
    parts = [ordered[low:high] for low, high in pairwise(edges) if high > low]
    return [(sum(score for score, _ in part) / len(part), sum(good for _, good in part) / len(part)) for part in parts]


def attacks(sources: Sources) -> Section:
    """Return what adversarial policies earn."""
    found = _keyed(sources, "attack", HACKING)
    title = "Attacks on the reward"
    if found is None:
        return Section("attacks", title, "No attack on the current reward was run in this workspace.")
    policies: dict[str, Any] = found.at("policies")
    # A policy without a margin earned nothing, and comes last.
    margins = {name: math.inf if one["margin"] is None else one["margin"] for name, one in policies.items()}
    order = sorted(policies, key=lambda name: margins[name])
    spans = [(name.replace("_", " "), interval(policies[name]["intervals"].get("margin", {}))) for name in order]
    rows = [(name, span) for name, span in spans if span is not None]
    chart = draw(
        "attacks", "How far adversarial policies stay below the scripted expert",
        "Margin of reward, the closest first; a margin below 0 earns more than the scripted expert",
        lambda axes: dots(axes, rows, zero=True), 0.5 + 0.2 * len(rows),
    )  # fmt: skip
    cells: list[Sequence[Cell]] = [
        (
            str(policies[name]["sentence"]),
            found.cite(two, "policies", name, "mean"),
            found.cite_interval(two, "policies", name, "intervals", "margin"),
            found.cite_interval(percent, "policies", name, "intervals", "above"),
            found.cite(percent, "policies", name, "solved"),
        )
        for name in order
    ]
    head = ("policy", "reward", "below the scripted expert by", "prompts where it earns more", "solved")
    lead = f"{len(policies)} policies that no reward should pay for, compared with the scripted expert."
    tables = [Table("Every policy", head, cells)]
    if (ablated := _keyed(sources, "ablation", ABLATION)) is not None:
        sides, penalty = (("figures", "without"), ("figures", "with")), "The over-clarification penalty"
        tables.append(figures_table(penalty, ("figure", "without", "with"), ablated, *sides))
    return Section("attacks", title, lead, (chart,), tables)


def _keyed(sources: Sources, name: str, one: Artifact) -> Source | None:
    """Return the report on the current reward; None without weights, since its name depends on them."""
    try:
        path = one.path(sources.run)
    except RC1Error:
        return None
    return sources.read(name, path)


def judge(sources: Sources) -> Section:
    """Return which judge scored, how reliably, and what it cost."""
    names = ("calibration", "shadow-run", "attack", "ablation")
    read = [(name, sources.by_name[name]) for name in names if name in sources.by_name]
    asked = [(name, found) for name, found in read if found.at("scoring")]
    # Includes figures that are only reported, which the round's own table leaves out.
    noise = gate_checks(sources, "Reliability and variance of its samples", "judge_stability")
    if not asked:
        lead = "No report of this workspace has scores, so nothing is known about its judge."
        return Section("judge", "The judge", lead, (), noise)
    rows: list[Sequence[Cell]] = []
    for name, found in asked:
        unstable = found.at("scoring", "unstable")
        rows.append(
            (
                name, ", ".join(found.at("scoring", "models") or []) or "unknown",
                *(found.cite(plain, "scoring", key) for key in ("rows", "calls", "replayed")),
                found.cite(percent, "scoring", "coverage"),
                str(len(unstable)) if isinstance(unstable, list) else "unknown",
                found.cite(dollars, "scoring", "usd"),
            )
        )  # fmt: skip
    head = ("step", "model", "dialogues", "calls", "replayed", "scored", "unstable", "cost")
    described = asked[0][1].at("scoring", "judge") or {}
    lead = f"Provider {described.get('provider')}, instructions {described.get('spec')}."
    paid = Table("Asked, replayed, paid", head, rows, True)
    return Section("judge", "The judge, and what it cost", lead, (), (paid, *noise))
