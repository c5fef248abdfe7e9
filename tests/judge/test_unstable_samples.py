"""The list of unstable dialogues: who stays in it, and who leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.judge.results import Judged
from rc1_lib.judge.score_files import UNSTABLE, keep_unstable
from rc1_lib.workspace.artifacts import Workspace

JUDGE = {"provider": "openai", "model": "m"}


def judged(unstable: dict[str, bool | None]) -> Judged:
    """Dialogue -> whether it is unstable; None where it is unscored."""
    rows = pl.DataFrame(
        {
            "dialogue": list(unstable),
            "scored": [found is not None for found in unstable.values()],
            "unstable": list(unstable.values()),
        },
        schema_overrides={"unstable": pl.Boolean},
    )
    nothing: Any = None
    replies = pl.DataFrame({"dialogue": list(unstable), "text": ["{}"] * len(unstable)})
    return Judged(rows, replies, "", 0.0, 0, False, nothing, "run")


def listed(root: Path) -> list[str]:
    path = root / UNSTABLE
    return [json.loads(line)["dialogue"] for line in path.read_text().splitlines()] if path.exists() else []


def test_what_could_not_be_judged_again_stays_listed(tmp_path: Path) -> None:
    place = Workspace(tmp_path)
    keep_unstable(place, ["1", "2", "3"], judged({"a": True, "b": True, "c": True}), JUDGE)
    keep_unstable(place, ["1", "2"], judged({"a": None, "b": False}), JUDGE)
    assert listed(tmp_path) == ["a", "c"]


@pytest.mark.parametrize("line", ['{"judge": {"provider": "openai", "model": "m"}, "dialogue": ["a"]}', "[]", "{", ""])
def test_a_line_of_another_form_says_nothing_any_more(tmp_path: Path, line: str) -> None:
    path = tmp_path / UNSTABLE
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    keep_unstable(Workspace(tmp_path), ["1"], judged({"b": True}), JUDGE)
    assert listed(tmp_path) == ["b"]
