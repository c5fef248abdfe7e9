"""`rc1 world export` and `rc1 export`: output, exit codes and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rc1_lib.run import Run
from tests.extras.worlds.small import PRICES, small_run
from tests.once import copied

from .conftest import Rc1, settings

SETTINGS = settings(PRICES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    small_run(tmp_path)
    return tmp_path


def test_export_leaves_the_evaluation_out_and_replaces_nothing(rc1: Rc1, root: Path) -> None:
    done = rc1("world", "export", "--workspace", root, *SETTINGS)
    assert done.code == 0
    assert "2 rows of data/rollouts/rc1_seed.balanced.jsonl" in done.out
    assert "pool-hotpotqa-1" not in (root / "outputs/rc1_world/rows.jsonl").read_text(), "it belongs to the evaluation"
    assert "the judge's share, 0.3 of the reward, is left out" in done.out
    again = rc1("world", "export", "--workspace", root, *SETTINGS)
    assert (again.code, "already exists" in again.err) == (2, True)


def test_custom_rows_are_exported(rc1: Rc1, root: Path) -> None:
    own = root / "own.jsonl"
    own.write_text((root / "data/rollouts/rc1_seed.balanced.jsonl").read_text().splitlines()[0] + "\n")
    to = ("--to", "outputs/mine", "--workspace", root, *SETTINGS)
    assert "1 rows of own.jsonl" in rc1("world", "export", "--rows", "own.jsonl", *to).out


def test_export_for_a_trainer_needs_the_ticket_and_says_what_it_wrote(rc1: Rc1, opened: Run, tmp_path: Path) -> None:
    root = copied(opened, tmp_path / "workspace").workspace.root
    here = ("--workspace", root, *settings(opened.overrides))
    done = rc1("export", "--to", "hf", "outputs/hf", "--json", *here)
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows"]["count"] > 100 and (root / "outputs/hf/README.md").is_file()
    outside = rc1("export", "--to", "hf", "../hf", *here)
    assert (outside.code, "DIR ../hf" in outside.err) == (2, True)
    (root / "reports/preflight/ticket.json").unlink()
    refused = rc1("export", "--to", "trl", "outputs/trl", *here)
    assert (refused.code, "ticket.json" in refused.err, (root / "outputs/trl").exists()) == (2, True, False)
