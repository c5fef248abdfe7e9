"""Success before and after training, by what the prompts are like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rc1_lib.evaluation.plots.pairs import Pair, draw_pairs, interval_caption
from rc1_lib.reward.plots.canvas import canvas, legend, sentence, write_png
from rc1_lib.task_specs import task_spec

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
    sections = [[_pair(f"{words}\n{counts[name]:,}", overall, name) for name, words in _PARTS.items()]]
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
    return _pair(f"{label}\n{found['prompts']:,}", found, "success")


def _in_two(label: str) -> str:
    """`HotpotQA` on two lines, so that neighbours do not touch."""
    return re.sub(r"(?<=[a-z])(?=[A-Z]+$)", "\n", label)


def _pair(label: str, found: Mapping[str, Any], figure: str) -> Pair:
    return Pair(label, found["before"][figure], found["after"][figure])
