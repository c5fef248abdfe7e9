"""Plots of a training: the metrics in `metrics.jsonl` by step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.plots.canvas import INK, NEW, NORMAL, QUIET, SMALL, canvas, plain, sentence, write_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS: Mapping[str, str] = {
    "objective/scores": "reward of an episode",
    "judge/score": "judged score (proxy)",
    "env/success": "success (truth)",
    "env/right": "right answers",
    "env/success_needed": "success, asking needed",
    "env/right_needed": "right, asking needed",
    "env/asked_needed": "asks where needed",
    "env/asked_clear": "asks where not needed",
    "num_turns/mean": "turns",
    "objective/kl_per_token": "KL to the reference per token",
    "policy/clipfrac_avg": "clipped tokens, share",
    "critic/vf_explained_var": "value head, explained variance",
}
"""Metric that training writes (`rc1_lib.environment.outcome`, `training.engines.torch_ppo`) -> title of its panel."""
SUPERVISED: Mapping[str, str] = {
    "loss": "loss, nats per learned token",
    "mean_token_accuracy": "learned tokens ranked first, share",
    "grad_norm": "gradient norm",
}
"""The same for supervised training, which plays no episodes."""
_STEP = "step"
_COLUMNS = 3
MEDIAN_OF = 5
"""The strong line is the median of this many steps; the faint one shows each step's value."""


def read_metrics(path: Path) -> pl.DataFrame:
    """Read the metrics of a training, one row per step.

    Raises:
        RC1Error: when the file is missing, or does not contain JSON lines with a step.
    """
    try:
        frame = pl.read_ndjson(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        cause = str(error).partition("\n")[0]
        raise RC1Error(f"{path}: cannot be read as the metrics of a training ({cause})") from None
    if _STEP not in frame.columns:
        raise RC1Error(f"{path}: its lines have no '{_STEP}'; expected the metrics of a training")
    return frame.sort(_STEP)


def panels_of(metrics: Collection[str]) -> Mapping[str, str]:
    """Return the panels for a training with these metrics; only a training that plays writes episode scores."""
    return SUPERVISED if "mean_token_accuracy" in metrics and "objective/scores" not in metrics else PANELS


def curves(path: Path, metrics: pl.DataFrame, *, panels: Mapping[str, str] | None = None, caption: str = "") -> None:
    """Draw one panel for each metric in `panels` (default: those of `panels_of`) that the training wrote.

    Raises:
        RC1Error: when it wrote none of them.
    """
    panels = panels_of(metrics.columns) if panels is None else panels
    shown = {name: title for name, title in panels.items() if name in metrics and metrics[name].drop_nulls().len()}
    if not shown:
        raise RC1Error(f"the training wrote none of the metrics {', '.join(panels)}: there are no curves to draw")
    lines = -(-len(shown) // _COLUMNS)
    steps = metrics[_STEP]
    figure = canvas(
        "Training",
        sentence(
            f"Steps {steps[0]} to {steps[-1]}. Strong: running median of {MEDIAN_OF} steps; faint: each step",
            caption,
        ),
        height=1.0 + 1.9 * lines,
    )
    grid = figure.subplots(lines, _COLUMNS, squeeze=False, sharex=True).ravel()
    for axes, (name, title) in zip(grid, shown.items(), strict=False):
        _line(axes, metrics.select(_STEP, pl.col(name).cast(pl.Float64)).drop_nulls(), title)
    for place, axes in enumerate(grid):
        if place >= len(shown):
            axes.set_visible(False)
        elif place + _COLUMNS >= len(shown):
            # The last panel of its column, which may be in the second to last row.
            axes.tick_params(axis="x", labelbottom=True)
            axes.set_xlabel("step", fontsize=SMALL, color=INK)
    write_png(path, figure)


def _line(axes: Axes, found: pl.DataFrame, title: str) -> None:
    step, value = found.columns
    median = found[value].rolling_median(MEDIAN_OF, min_samples=1, center=True)
    axes.plot(found[step], found[value], color=QUIET, linewidth=0.9, alpha=0.6, marker=".", markersize=3)
    axes.plot(found[step], median, color=NEW, linewidth=2.0)
    plain(axes)
    axes.set_title(title, fontsize=NORMAL, color=INK)
    axes.locator_params(axis="y", nbins=4)
