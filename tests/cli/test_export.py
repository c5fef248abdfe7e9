"""`rc1 export`: output, exit codes and errors."""

from __future__ import annotations

import json
from pathlib import Path

from rc1_lib.run import Run
from tests.once import copied

from .conftest import Rc1, settings


def test_export_for_a_trainer_needs_the_ticket_and_says_what_it_wrote(rc1: Rc1, opened: Run, tmp_path: Path) -> None:
    root = copied(opened, tmp_path / "workspace").workspace.root
    here = ("--workspace", root, *settings(opened.overrides))
    done = rc1("export", "--to", "hf", "outputs/hf", "--json", *here)
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows"]["count"] > 100 and (root / "outputs/hf/README.md").is_file()
    assert "the judge's share, " in rc1("export", "--to", "hf", "outputs/again", *here).out
    outside = rc1("export", "--to", "hf", "../hf", *here)
    assert (outside.code, "DIR ../hf" in outside.err) == (2, True)
    (root / "reports/preflight/ticket.json").unlink()
    refused = rc1("export", "--to", "trl", "outputs/trl", *here)
    assert (refused.code, "ticket.json" in refused.err, (root / "outputs/trl").exists()) == (2, True, False)
