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


def test_reference_pack_is_reported_with_kl_0_and_left_to_the_gate(tmp_path: Path) -> None:
    both = [f"pool.{key}=templates/pack_v1" for key in ("templates_dir", "reference_templates_dir")]
    run = open_run(workspace=tmp_path, overrides=[*SMALL, "pool.n=30", "shadow.n=10", *both])
    assert all(made["built"] for made in outcome(seed(run, "auto", return_state=True)))
    assert read_json(tmp_path / REPORT)["kl_3gram"] == 0.0


def test_report_follows_the_configuration_when_the_pool_is_kept(tmp_path: Path) -> None:
    """Another reference pack changes the report but not the pool."""

    def reported(build: str, *more: str) -> float | None:
        run = open_run(workspace=tmp_path, overrides=[*SMALL, "pool.n=30", "shadow.n=10", *more])
        outcome(seed(run, build, return_state=True))
        report = tmp_path / REPORT
        return read_json(report)["kl_3gram"] if report.exists() else None

    old = reported("auto")
    assert old is not None and old > 0
    assert reported("auto", "pool.reference_templates_dir=templates/pack_v2") == 0.0
    assert reported("never") == 0.0, "nothing is written with build=never"
    assert reported("auto", "pool.reference_templates_dir=templates/nowhere") is None
