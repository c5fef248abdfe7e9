"""The report of a scale-up: every measure at every size, as a table and as plots."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.config.file import departures
from rc1_lib.gate_report import PLOTS
from rc1_lib.plots.canvas import BAD, INK, NEW, QUIET, SMALL, canvas, plain, sentence, write_png
from rc1_lib.records import Check, waivers_of
from rc1_lib.run import Run, published_config
from rc1_lib.scale_up.looks import Look
from rc1_lib.scale_up.record import look_body
from rc1_lib.workspace.artifacts import now, write_json

REPORT = "reports/scale_up.json"
PICTURE = f"{PLOTS}/scale_up.png"


def write_report(run: Run, looks: Sequence[Look], sentence: str) -> None:
    """Write the report, and plot it.

    Args:
        run: the run of the whole pool.
        looks: the looks at every size so far, in order.
        sentence: the result in words.
    """
    write_json(
        run.workspace.path(REPORT),
        {
            "pass": all(look.passed for look in looks) and looks[-1].size == run.config.pool.n,
            "time": now(),
            "profile": run.config.profile,
            "config_sha256": run.config_sha256,
            "sizes": list(run.config.scale_up.sizes),
            "waived": waivers_of(result for look in looks for result in look.results),
            "thresholds_changed": departures(run.config, published_config()),
            "verdict": sentence,
            "table": table(looks),
            "looks": [look_body(look) for look in looks],
            "plots": {"every measure against size": PICTURE},
        },
    )
    _draw(run.workspace.path(PICTURE), measures(looks), caption=sentence)


def measures(looks: Sequence[Look]) -> dict[str, list[tuple[Look, Check]]]:
    """Return the checks of all looks by `gate: check`, without checks by task, which are only in the report."""
    found: dict[str, list[tuple[Look, Check]]] = {}
    for look in looks:
        for result in look.results:
            for check in result.checks:
                if check.op != "info" and not check.name.endswith("]"):
                    found.setdefault(f"{result.name}: {check.name}", []).append((look, check))
    return found


def table(looks: Sequence[Look]) -> list[dict[str, str]]:
    """Return one row per measure with one column per look; `FAILED` follows a value that misses its threshold."""
    titles = [look.title for look in looks]
    return [
        {
            "measure": name,
            "wanted": _wanted([check for _, check in values]),
            **dict.fromkeys(titles, ""),
            **{look.title: _amount(check.value) + ("" if check.passed else " FAILED") for look, check in values},
        }
        for name, values in measures(looks).items()
    ]


def _wanted(checks: Sequence[Check]) -> str:
    """Return the threshold of a measure; empty if it differs between sizes."""
    thresholds = {f"{check.op} {_amount(check.threshold)}" for check in checks}
    return thresholds.pop() if len(thresholds) == 1 else ""


def _amount(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measured = Sequence[tuple[Look, Check]]
_COLUMNS = 3
_WIDE = 30
"""Characters per line of a panel's title."""


def _draw(path: Path, found: Mapping[str, Measured], caption: str) -> None:
    """Draw one panel for each measure that is a number with a threshold.

    Args:
        path: path of the PNG.
        found: measure -> its check in each look.
        caption: the result in words.
    """
    shown = {name: values for name, values in found.items() if _is_drawn(values)}
    lines = max(1, -(-len(shown) // _COLUMNS))
    figure = canvas(
        "Every measure against the pool's size",
        sentence("Dots: after a size was reached; rings: again before the next size. Dashed: threshold", caption),
        height=1.2 + 2.0 * lines,
    )
    grid = figure.subplots(lines, _COLUMNS, squeeze=False).ravel()
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    for axes, (name, values) in zip(grid, shown.items(), strict=False):
        _panel(axes, name, values)
    write_png(path, figure)


def _is_drawn(values: Measured) -> bool:
    return all(isinstance(check.threshold, int | float) and check.op in ("<=", ">=") for _, check in values)


def _panel(axes: Axes, name: str, values: Measured) -> None:
    sizes = [look.size for look, _ in values]
    figures = [float(check.value) if isinstance(check.value, int | float) else math.nan for _, check in values]
    plain(axes)
    axes.axhline(float(values[-1][1].threshold), color=QUIET, linestyle="--", linewidth=1.2)  # type: ignore[arg-type]
    reached = [place for place, (look, _) in enumerate(values) if not look.again]
    axes.plot([sizes[place] for place in reached], [figures[place] for place in reached], color=NEW, linewidth=1.5)
    for size, figure, (look, check) in zip(sizes, figures, values, strict=True):
        colour = NEW if check.passed else BAD
        axes.plot(
            size, figure, marker="o", markersize=9 if look.again else 5, markeredgecolor=colour,
            markerfacecolor="none" if look.again else colour, linestyle="none",
        )  # fmt: skip
    ticks = sorted(set(sizes))
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks], minor=False)
    axes.minorticks_off()
    axes.set_xlim(min(ticks) / 1.5, max(ticks) * 1.5)
    gate, _, figure_of = name.partition(": ")
    axes.set_title("\n".join([gate, *textwrap.wrap(figure_of, _WIDE)]), fontsize=SMALL, color=INK)
    axes.locator_params(axis="y", nbins=4)
