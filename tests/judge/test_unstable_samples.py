"""The list of high-variance dialogues: which stay listed, and which are removed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from rc1_lib.judge.results import Judged
from rc1_lib.judge.score_files import UNSTABLE, keep_unstable
from rc1_lib.workspace.artifacts import Workspace

JUDGE = {"provider": "openai", "model": "m"}


def judged(unstable: dict[str, bool | None]) -> Judged:
    """Make a result from dialogue -> whether it is unstable, or None for a missing score."""
    rows = pl.DataFrame(
        {
            "dialogue": list(unstable),
            "scored": [found is not None for found in unstable.values()],
            "unstable": list(unstable.values()),
        },
        schema_overrides={"unstable": pl.Boolean},
    )
    replies = pl.DataFrame({"dialogue": list(unstable), "text": ["{}"] * len(unstable)})
    return Judged(rows, replies, "run")


def listed(root: Path) -> list[str]:
    path = root / UNSTABLE
    return [json.loads(line)["dialogue"] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_dialogue_with_a_missing_score_stays_listed(tmp_path: Path) -> None:
    place = Workspace(tmp_path)
    keep_unstable(place, ["1", "2", "3"], judged({"a": True, "b": True, "c": True}), JUDGE)
    keep_unstable(place, ["1", "2"], judged({"a": None, "b": False}), JUDGE)
    assert listed(tmp_path) == ["a", "c"]
