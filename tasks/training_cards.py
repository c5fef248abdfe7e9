"""Training in the Prefect UI: its starting point, the metrics of every step, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.logging import get_run_logger

from rc1_lib.run import Run
from rc1_lib.runtime.progress import listening
from rc1_lib.training.callbacks.logs import SECONDS, STAGE, MetricsLog
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.run_paths import paths_of

_SHOWN = {
    "loss": "loss", "mean_token_accuracy": "accuracy", "kl": "KL", "objective/scores": "reward",
    "judge/score": "judged score", "env/success": "success", "env/right": "right answers",
    "env/asked_needed": "asked, needed", "env/asked_clear": "asked, not needed",
    "num_turns/mean": "turns", "sec_per_step": "seconds",
}  # fmt: skip
"""Metric -> its column title; metrics that no step of a segment measures have no column."""


def show_start(run: Run, prepared: Prepared) -> None:
    """Show the starting point of training: the rows and the reference policy."""
    report = prepared.selection.report
    counts = [f"| {name} | {count:,} |" for name, count in report["train_by_task_and_bucket"].items()]
    left = [f"- left out, {reason}: {count:,}" for reason, count in report["left_out"].items()]
    create_markdown_artifact(
        key="rc1-warm-start",
        markdown="\n".join(
            [
                "# Warm start",
                f"reference policy: `{run.workspace.name(run.workspace.path(prepared.reference.base))}`, "
                f"SHA-256 `{prepared.reference.sha256}`\n",
                f"- training rows: {report['train']:,}",
                f"- held-out prompts: {report['held_out']:,}",
                *left,
                "\n| task and difficulty | rows |\n| --- | ---: |",
                *counts,
            ]
        )
        + "\n",
        description=f"{report['train']:,} training rows, {report['held_out']:,} held-out prompts",
    )


@contextmanager
def showing_steps(run: Run, seed: int, first: int) -> Iterator[Callable[[int], None]]:
    """Log every step during the block, and update a progress bar, since a segment may take hours.

    Args:
        seed: the run's seed.

    Yields:
        A function that moves the bar to the segment's last step.
    """
    logger, total = get_run_logger(), run.config.steps
    begun = create_progress_artifact(
        key=f"rc1-train-{seed}-progress",
        progress=100.0 * (first - 1) / total,
        description=_place(seed, first - 1, total),
    )
    bar = cast(UUID, begun)

    def moved(progress: float, description: str) -> None:
        try:
            update_progress_artifact(bar, progress, description)
        except Exception as error:  # a server that is away: the step is done, and its checkpoint comes next
            logger.warning("the progress bar was not moved (%s)", type(error).__name__)

    def heard(stage: str, done: int, of: int, note: str) -> None:
        if stage == STAGE:
            logger.info("step %d/%d %s", done, of, note)
            moved(100.0 * done / of, f"{_place(seed, done, of)}, {note}")

    def arrived(step: int) -> None:
        moved(100.0 * step / total, _place(seed, step, total))

    with listening(heard):
        yield arrived


def show_segment(run: Run, seed: int, first: int, last: int) -> None:
    """Show the metrics of a segment's steps as a table."""
    lines = [
        line
        for line in MetricsLog(run.workspace.path(paths_of(run, seed).metrics)).read()
        if first <= line["step"] <= last
    ]
    shown = _place(seed, last, run.config.steps)
    create_markdown_artifact(
        key=f"rc1-train-{seed}", markdown=f"# {shown}\n\n{steps_table(lines)}\n", description=f"{shown}{_latest(lines)}"
    )


def _place(seed: int, step: int, of: int) -> str:
    return f"seed {seed}: step {step} of {of}"


def steps_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table with one row per step and one column per measured metric in `_SHOWN`."""
    known = _measured(lines)
    head = ("step", *known.values())
    rows = [(str(line["step"]), *(_figure(line.get(name)) for name in known)) for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---:",) * len(head), *rows))


def _latest(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    shown = [f"{words} {_figure(lines[-1].get(name))}" for name, words in _measured(lines).items() if name != SECONDS]
    return ", " + ", ".join(shown)


def _measured(lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the metrics in `_SHOWN` that at least one step measured."""
    return {name: words for name, words in _SHOWN.items() if any(line.get(name) is not None for line in lines)}


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
