"""The data stages write a diversity report next to the files and their manifests."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.run import open_run
from rc1_lib.workspace.artifacts import read_json
from tasks.data import seed
from tasks.endings import outcome
from tests.conftest import SMALL

REPORT = "reports/diversity_report.json"


def test_building_the_pool_reports_the_diversity_of_its_templates(tmp_path: Path) -> None:
    run = open_run(workspace=tmp_path, overrides=[*SMALL, "pool.n=30", "shadow.n=10"])
    outcome(seed(run, "auto", return_state=True))
    report = read_json(tmp_path / REPORT)
    assert report["measured"] == "templates/pack_v2"
    wanted = {"distinct_1", "distinct_2", "type_token_ratio", "kl_3gram", "zipf_slope", "roles", "styles"}
    assert wanted <= report.keys()
    assert (len(report["roles"]) >= 4, len(report["styles"]) >= 3, report["kl_3gram"] >= 0.15) == (True, True, True)
