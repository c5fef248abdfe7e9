"""The judged score beside verified success, from the start over the checkpoints on the way to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.evaluation.plots.pairs import interval_caption
from rc1_lib.reward.plots.canvas import (
    INK,
    NEW,
    NORMAL,
    OLD,
    SMALL,
    canvas,
    known,
    legend,
    plain,
    sentence,
    write_png,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = (("proxy", "judged score (proxy)", OLD, "s"), ("truth", "success (truth)", NEW, "o"))
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
        _panel(axes, [*((str(point["step"]), point) for point in course), ("end", end)])
        axes.set_title(f"seed {seed}", fontsize=NORMAL, color=INK)
    legend(figure, panels[0])
    write_png(path, figure)


def _panel(axes: Axes, points: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    for number, (name, words, colour, mark) in enumerate(_LINES):
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
