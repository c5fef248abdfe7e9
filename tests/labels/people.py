"""A made-up annotator, who mostly agrees with the judge and errs independently."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rc1_lib.judge import rubric
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.run import Run

CUT = 0.91
"""A threshold of the baseline reward that splits the small shadow set's dialogues about in half."""


def old_scores(run: Run) -> list[float]:
    weights = run.config.reward.old_weights
    dialogues = rows_of(run, SHADOW)["messages"].to_list()
    return [
        sum(weight * scores[name] for name, weight in weights.items())
        for scores in (rubric.score(messages) for messages in dialogues)
    ]


def labelled(run: Run, good: Callable[[float, np.random.Generator], bool], n: int = 100) -> list[dict[str, Any]]:
    """The first dialogues of the shadow set as rows of a label file; `good` judges a baseline reward."""
    rng = np.random.default_rng(0)
    rows = rows_of(run, SHADOW).head(n)
    parts = zip(rows["messages"].to_list(), rows["source_id"], old_scores(run), strict=False)
    return [
        {"messages": dialogue_of([], messages, "a row"), "group": group, "label": said(good(score, rng))}
        for messages, group, score in parts
    ]


def said(good: bool) -> str:
    """The label of a verdict."""
    return "good" if good else "bad"


def fair(score: float, rng: np.random.Generator) -> bool:
    """A verdict that differs from the judge's in one dialogue of ten."""
    return bool((score >= CUT) ^ (rng.random() < 0.1))


def put(run: Run, rows: Sequence[dict[str, Any]]) -> Path:
    """Write the run's label file."""
    path = run.workspace.path(run.config.judge.labels.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
