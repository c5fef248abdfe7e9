"""Pictures of an evaluation: from its report to a PNG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.plots.canvas import (
    INK,
    NEW,
    NORMAL,
    NOT_KNOWN,
    OLD,
    SMALL,
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
"""Of a bar, and between sections; pairs stand 1 apart."""
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two bars.

    Attributes:
        label: below them.
        before: `value`, `low`, `high`: shares in [0, 1]; None or NaN where undefined.
        after: the same.
    """

    label: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def draw_pairs(axes: Axes, sections: Sequence[Sequence[Pair]], names: tuple[str, str], y: str = "") -> None:
    """Draw the pairs on one scale from 0 to 100 %; what is undefined is said to be, not drawn as 0.

    Args:
        axes: to draw into.
        sections: of pairs from left to right, with a gap between sections.
        names: of the two policies, for the legend.
        y: what the axis says.
    """
    pairs = [pair for section in sections for pair in section]
    middles = [place + _GAP * number for place, number in enumerate(_numbers(sections))]
    for offset, side, name, colour in ((-_WIDTH / 2, "before", names[0], OLD), (_WIDTH / 2, "after", names[1], NEW)):
        found = [getattr(pair, side) for pair in pairs]
        heights = [100.0 * (known(one["value"]) or 0.0) for one in found]
        places = [middle + offset for middle in middles]
        axes.bar(places, heights, width=_WIDTH - 0.03, color=colour, label=f"{side} training ({name})")
        for place, one, height in zip(places, found, heights, strict=True):
            low, high = known(one["low"]), known(one["high"])
            top = height
            if low is not None and high is not None:
                axes.vlines(place, 100.0 * low, 100.0 * high, color=INK, linewidth=1.4)
                top = max(top, 100.0 * high)
            text = NOT_KNOWN if known(one["value"]) is None else f"{height:.0f}"
            axes.annotate(
                text, (place, top), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=SMALL, color=INK
            )
    plain(axes, y=y)
    axes.set(ylim=(0, 112.0), xlim=(-0.6, middles[-1] + 0.6))
    axes.set_xticks(middles, [pair.label for pair in pairs])
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")


def interval_caption(confidence: float) -> str:
    """What the lines are; number and sign stay on one line."""
    return f"Lines: {100 * confidence:g}{NO_BREAK}% bootstrap intervals over source questions"


def _numbers(sections: Sequence[Sequence[Pair]]) -> list[int]:
    return [number for number, section in enumerate(sections) for _ in section]


_PARTS = {
    "success": "all", "success_needed": "asking\nneeded", "success_clear": "nothing\nmissing",
    "success_hard": "hard,\nmulti-hop",
}  # fmt: skip


def success(path: Path, report: Mapping[str, Any], *, mode: str = "sampled", caption: str = "") -> None:
    """Draw success over all prompts, where asking is needed and not, by task and by difficulty.

    Args:
        path: of the PNG.
        report: an evaluation's report: `before`, `after`, `groups`, `modes`.
        mode: whose episodes.
        caption: added to what is said of n.
    """
    compared, groups = report["modes"][mode], report["groups"]
    overall = compared["overall"]
    counts = {
        "success": overall["prompts"], "success_needed": groups["need asking"], "success_clear": groups["clear"],
        "success_hard": groups["hard"],
    }  # fmt: skip
    sections = [[_pair_of(f"{words}\n{counts[name]:,}", overall, name) for name, words in _PARTS.items()]]
    sections.append([_group(_in_two(task_spec(name).label), one) for name, one in compared["by"]["task"].items()])
    sections.append([_group(name, one) for name, one in compared["by"]["bucket"].items()])
    figure = canvas(
        f"Success on held-out prompts, {mode}",
        sentence(
            "Below each pair: how many prompts it is about. A lucky guess of a missing piece is no success",
            interval_caption(overall["change"]["success"]["confidence"]),
            caption,
        ),
        height=4.8,
        legend_row=True,
    )
    axes = figure.subplots()
    draw_pairs(axes, sections, (report["before"], report["after"]), "prompts solved, %")
    legend(figure, axes)
    write_png(path, figure)


def _group(label: str, found: Mapping[str, Any]) -> Pair:
    return _pair_of(f"{label}\n{found['prompts']:,}", found, "success")


def _in_two(label: str) -> str:
    """`HotpotQA` on two lines, so that neighbours do not touch."""
    return re.sub(r"(?<=[a-z])(?=[A-Z]+$)", "\n", label)


def _pair_of(label: str, found: Mapping[str, Any], figure: str) -> Pair:
    return Pair(label, found["before"][figure], found["after"][figure])


def asking(path: Path, report: Mapping[str, Any], *, caption: str = "") -> None:
    """Draw the share of prompts asked about, sampled and greedy, by whether something is missing and by wording.

    Args:
        path: of the PNG.
        report: an evaluation's report: `before`, `after`, `groups`, `modes`.
        caption: added to what is said of n.
    """
    groups = report["groups"]
    some = next(iter(report["modes"].values()))["overall"]["change"]["success"]
    figure = canvas(
        "When it asks, before and after training",
        sentence(
            f"n = {groups['need asking']:,} prompts where something is missing, {groups['clear']:,} where nothing is",
            "Asked about: with at least one question to the user. 'Vague' words sound as if something were missing",
            interval_caption(some["confidence"]),
            caption,
        ),
        height=4.8,
        legend_row=True,
    )
    panels = figure.subplots(1, len(report["modes"]))
    for number, (axes, (mode, compared)) in enumerate(zip(panels, report["modes"].items(), strict=True)):
        words = "" if number else "prompts asked about, %"
        draw_pairs(axes, [_asking_pairs(compared)], (report["before"], report["after"]), words)
        axes.set_title(mode, fontsize=NORMAL, color=INK)
    legend(figure, panels[0])
    write_png(path, figure)


def _asking_pairs(compared: Mapping[str, Any]) -> list[Pair]:
    pairs = [_pair_of("something\nmissing", compared["overall"], "ask_recall")]
    pairs += [
        _pair_of(f"nothing\nmissing,\n{wording} words", found, "overclar_rate")
        for wording, found in compared["by"]["wording"].items()
    ]
    return pairs


_PROXY_LINES = (("proxy", "judged score (proxy)", OLD, "s"), ("truth", "success (truth)", NEW, "o"))
_APART = 0.12
"""How far the marks of the two lines stand apart; steps are evenly spaced."""


def proxy(path: Path, report: Mapping[str, Any], *, caption: str = "") -> None:
    """Draw how both have changed against the start, a panel a seed; what is undefined is left out.

    Args:
        path: of the PNG.
        report: an evaluation's report: `proxy`, `prompts`, `modes`.
        caption: added to what is said of n.
    """
    found = report["proxy"]
    ends = {seed: groups["all"] for seed, groups in found["by_seed"].items()}
    ends = ends or {next(iter(report["prompts"])): found["groups"]["all"]}
    some = found["groups"]["all"]["proxy"]["change"]
    figure = canvas(
        "Proxy and truth: change against the start, in points of 100",
        sentence(
            f"n = {found['groups']['all']['prompts']:,} pairs of episodes at the end, fewer on the way",
            "Where the judged score rises and success falls, the score was gamed",
            interval_caption(some["confidence"]),
            caption,
        ),
        height=4.4,
        legend_row=True,
    )
    panels = figure.subplots(1, len(ends), sharey=True, squeeze=False)[0]
    for axes, (seed, end) in zip(panels, ends.items(), strict=True):
        course = [point for point in found["course"] if str(point["seed"]) == str(seed)]
        _proxy_panel(axes, [*((str(point["step"]), point) for point in course), ("end", end)])
        axes.set_title(f"seed {seed}", fontsize=NORMAL, color=INK)
    legend(figure, panels[0])
    write_png(path, figure)


def _proxy_panel(axes: Axes, points: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    for number, (name, words, colour, mark) in enumerate(_PROXY_LINES):
        places, values, spans = [0.0], [0.0], [(0.0, 0.0)]
        for place, (_, point) in enumerate(points, start=1):
            value, low, high = (known(point[name]["change"][key]) for key in ("value", "low", "high"))
            if value is not None and low is not None and high is not None:
                places.append(place + _APART * (number - 0.5))
                values.append(100.0 * value)
                spans.append((100.0 * low, 100.0 * high))
        axes.plot(places, values, color=colour, linewidth=2.0, marker=mark, markersize=6, label=words)
        axes.vlines(places, [low for low, _ in spans], [high for _, high in spans], color=colour, linewidth=1.4)
    axes.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    plain(axes)
    axes.set_xticks(range(len(points) + 1), ["start", *(label for label, _ in points)])
    axes.set_xlabel("step", fontsize=SMALL, color=INK)
