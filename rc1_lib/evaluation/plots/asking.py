"""When a policy asks: where something is missing and where nothing is, before and after training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rc1_lib.evaluation.plots.pairs import Pair, draw_pairs, interval_caption
from rc1_lib.reward.plots.canvas import INK, NORMAL, canvas, legend, sentence, write_png


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
        draw_pairs(axes, [_pairs(compared)], (report["before"], report["after"]), words)
        axes.set_title(mode, fontsize=NORMAL, color=INK)
    legend(figure, panels[0])
    write_png(path, figure)


def _pairs(compared: Mapping[str, Any]) -> list[Pair]:
    pairs = [_pair("something\nmissing", compared["overall"], "ask_recall")]
    pairs += [
        _pair(f"nothing\nmissing,\n{wording} words", found, "overclar_rate")
        for wording, found in compared["by"]["wording"].items()
    ]
    return pairs


def _pair(label: str, found: Mapping[str, Any], figure: str) -> Pair:
    return Pair(label, found["before"][figure], found["after"][figure])
