"""Plots of an evaluation: each takes a report and writes the PNG `path`; `caption` is added to its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.plots.canvas import (
    INK,
    NEW,
    NORMAL,
    NOT_KNOWN,
    OLD,
    bars,
    canvas,
    known,
    legend,
    plain,
    sentence,
    write_png,
)
from rc1_lib.task_specs import task_spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _GAP = 0.38, 0.45
"""Width of a bar, and gap between sections; pairs are 1 apart."""
NO_BREAK = "\N{NO-BREAK SPACE}"


Pair = tuple[str, Mapping[str, Any], str]
"""Label below two bars; `before` and `after` by metric, each with `value`, `low`, `high` in [0, 1]; the metric."""


def _pairs(
    axes: Axes,
    sections: Sequence[Sequence[Pair]],
    report: Mapping[str, Any],
    y: str = "",
    wholes: Mapping[str, str] | None = None,
) -> None:
    """Draw pairs of bars from 0 to 100 %, with gaps between sections; undefined values are labelled as such.

    `wholes` maps a metric to one that is never smaller; the rest up to it is drawn lighter, on top of the bar.
    """
    pairs = [pair for section in sections for pair in section]
    gaps = [_GAP * number for number, section in enumerate(sections) for _ in section]
    middles = [place + gap for place, gap in enumerate(gaps)]
    for side, offset, colour in (("before", -_WIDTH / 2, OLD), ("after", _WIDTH / 2, NEW)):
        found = [values[side][metric] for _, values, metric in pairs]
        values, lows, highs = ([known(interval[key]) for interval in found] for key in ("value", "low", "high"))
        heights = [100.0 * (value or 0.0) for value in values]
        places = [middle + offset for middle in middles]
        texts = [NOT_KNOWN if value is None else f"{100 * value:.0f}" for value in values]
        tops = [max(height, 100.0 * (high or 0.0)) for height, high in zip(heights, highs, strict=True)]
        if wholes:
            # An undefined value has an undefined whole, so its rest is 0.
            ends = [100.0 * (known(of[side][wholes[metric]]["value"]) or 0.0) for _, of, metric in pairs]
            rests = [end - height for end, height in zip(ends, heights, strict=True)]
            axes.bar(places, rests, bottom=heights, width=_WIDTH - 0.03, color=colour, alpha=0.35)
            tops = list(map(max, tops, ends))
        label = f"{side} training ({report[side]})"
        bars(axes, places, heights, texts, tops, width=_WIDTH - 0.03, color=colour, label=label)
        for place, low, high in zip(places, lows, highs, strict=True):
            if low is not None and high is not None:
                axes.vlines(place, 100.0 * low, 100.0 * high, color=INK, linewidth=1.4)
    plain(axes, y=y)
    axes.set(ylim=(0, 112.0), xlim=(-0.6, middles[-1] + 0.6))
    axes.set_xticks(middles, [label for label, _, _ in pairs])
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")


def _lines(change: Mapping[str, Any]) -> str:
    """Explain the lines; number and sign stay on one line."""
    return f"Lines: {100 * change['confidence']:g}{NO_BREAK}% bootstrap intervals over source questions"


def _each(seeds: int) -> str:
    return f", each played by the policies of {seeds} seeds" if seeds > 1 else ""


_PARTS = {
    "success": "all", "success_needed": "asking\nneeded", "success_clear": "nothing\nmissing",
    "success_hard": "hard,\nmulti-hop",
}  # fmt: skip
_RIGHT = {
    "success": "right", "success_needed": "right_needed", "success_clear": "right_clear", "success_hard": "right_hard",
}  # fmt: skip
"""Success of some prompts -> right answers, of which it is a part."""


def success(path: Path, report: Mapping[str, Any], *, mode: str = "sampled", caption: str = "") -> None:
    """Draw success and right answers over all prompts, where asking is needed and not, by task and by difficulty."""
    compared, groups, seeds = report["modes"][mode], report["groups"], len(report["prompts"])
    overall = compared["overall"]
    counts = {
        "success": overall["prompts"], "success_needed": groups["need asking"], "success_clear": groups["clear"],
        "success_hard": groups["hard"],
    }  # fmt: skip
    # `HotpotQA` is split into two lines, so that neighbours do not touch.
    split = [[(re.sub(r"(?<=[a-z])(?=[A-Z]+$)", "\n", task_spec(name).label), part)
              for name, part in compared["by"]["task"].items()], list(compared["by"]["bucket"].items())]  # fmt: skip
    sections: list[list[Pair]] = [
        [(f"{words}\n{counts[name] // seeds:,}", overall, name) for name, words in _PARTS.items()],
        *(
            [(f"{label}\n{found['prompts'] // seeds:,}", found, "success") for label, found in groups]
            for groups in split
        ),
    ]
    figure = canvas(
        f"Success and right answers on held-out prompts, {mode}",
        sentence(
            f"Below each pair: number of prompts{_each(seeds)}. Solid, with its number: success. Lighter, on top: "
            "right without asking, which is no success; together they are the right answers",
            _chance(report),
            _lines(overall["change"]["success"]),
            caption,
        ),
        height=4.8,
        legend_row=True,
    )
    axes = figure.subplots()
    _pairs(axes, sections, report, "prompts, %", _RIGHT)
    legend(figure, axes)
    write_png(path, figure)


def _chance(report: Mapping[str, Any]) -> str:
    value = known((report.get("chance") or {}).get("overall"))
    return (
        ""
        if value is None
        else f"By chance, {100 * value:.0f}{NO_BREAK}% of the answers where asking is needed are right without it"
    )


def asking(path: Path, report: Mapping[str, Any], *, caption: str = "") -> None:
    """Draw the share of prompts in which the policy asks, sampled and greedy, by what is missing and by wording."""
    groups, seeds = report["groups"], len(report["prompts"])
    figure = canvas(
        "When it asks, before and after training",
        sentence(
            f"n = {groups['need asking'] // seeds:,} prompts where something is missing, {groups['clear'] // seeds:,} "
            f"where nothing is{_each(seeds)}",
            "Asked about: with at least one question to the user. 'Vague' words sound as if something was missing",
            _lines(report["modes"]["sampled"]["overall"]["change"]["success"]),
            caption,
        ),
        height=4.8,
        legend_row=True,
    )
    panels = figure.subplots(1, len(report["modes"]))
    for axes, (mode, compared) in zip(panels, report["modes"].items(), strict=True):
        pairs: list[Pair] = [("something\nmissing", compared["overall"], "ask_recall")]
        for wording, found in compared["by"]["wording"].items():
            pairs.append((f"nothing\nmissing,\n{wording} words", found, "overclar_rate"))
        _pairs(axes, [pairs], report, "prompts asked about, %" if axes is panels[0] else "")
        axes.set_title(mode, fontsize=NORMAL, color=INK)
    legend(figure, panels[0])
    write_png(path, figure)
