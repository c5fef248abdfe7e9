"""`rc1 label`: from a sheet to the figure, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from rc1_lib.run import Run

from .conftest import Rc1, records


def test_a_sheet_leads_to_the_comparison(rc1: Rc1, fresh_copy: Callable[..., Run], tmp_path: Path) -> None:
    run = fresh_copy()
    settings = [word for one in run.overrides for word in ("--set", one)]
    root = run.workspace.root
    done = rc1("label", "--workspace", root, *settings, "--n", "6", "--out", "sheets/six.jsonl")
    assert done.code == 0, done.err
    assert "6 dialogues to label" in done.out
    assert "rc1 label --labels sheets/six.jsonl" in done.out
    sheet = root / "sheets/six.jsonl"
    rows = [{**row, "label": ("good", "bad")[place % 2]} for place, row in enumerate(records(sheet))]
    labels = tmp_path / "six.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = rc1("label", "--workspace", root, *settings, "--labels", labels)
    assert shown.code == 2
    assert "6 dialogues, by the calibrated score" in shown.out
    assert "the judge is uncalibrated: label more dialogues" in shown.out
    assert f"--labels {labels}" in shown.out.splitlines()[-1]
    again = rc1("label", "--workspace", root, *settings, "--out", "sheets/six.jsonl")
    assert again.code == 2 and "exists and may have labels" in again.err
