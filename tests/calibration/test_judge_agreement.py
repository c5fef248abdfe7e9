"""Agreement of judge and people on real dialogues: a fair annotator passes, each kind of unsound labels fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rc1_lib.calibration.judge_agreement import (
    JUDGE,
    KAPPA,
    LABELLED,
    LIKENESS,
    OLD,
    PEOPLE,
    SAME,
    judge_agreement,
)
from rc1_lib.evidence import Evidence
from rc1_lib.gate_report import GateReport
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.labels.label_file import read_labels
from rc1_lib.pool.seed import build_seed
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.vouched import bound
from tests.conftest import SMALL
from tests.gates.verdicts import failed
from tests.labels.people import CUT, fair, labelled, put
from tests.once import copy_of

Rows = Sequence[dict[str, Any]]
SETTINGS = (*SMALL, f"judge.verdict_at={CUT}", "gates.shared.resamples=30", "gates.waivers={}")


def _shadow(root: Path) -> None:
    build_seed(open_run(profile="local", workspace=root, overrides=SETTINGS), ("shadow",))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A shadow set without calibrated weights: the gate uses the baseline reward."""
    root = copy_of("labelled_shadow", _shadow, tmp_path_factory)
    return open_run(profile="local", workspace=root, overrides=SETTINGS)


def compared(run: Run, rows: Rows, tmp_path: Path) -> GateReport:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return judge_agreement(run, read_labels(path))


def figures(report: GateReport) -> dict[str, Any]:
    return dict(report.body["agreement"])


def test_fair_annotator_on_a_hundred_dialogues_passes(run: Run, tmp_path: Path) -> None:
    report = compared(run, labelled(run, fair), tmp_path)
    found = figures(report)
    assert failed(report.gate) == set()
    assert report.body["judged_by"] == {"score": OLD, "weights": dict(run.config.reward.old_weights)}
    assert 0.7 < found[KAPPA]["value"] < 0.95 < 1
    assert found[KAPPA]["low"] < found[KAPPA]["value"] < found[KAPPA]["high"]
    assert found[SAME]["value"] > found[KAPPA]["value"]
    assert report.body["labels"]["dialogues"] == 100


def test_shuffled_labels_fail(run: Run, tmp_path: Path) -> None:
    rows = labelled(run, fair)
    labels = np.random.default_rng(5).permutation([row["label"] for row in rows]).tolist()
    shuffled = [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]
    assert failed(compared(run, shuffled, tmp_path).gate) == {"kappa with people"}


def test_labels_copied_from_the_judge_fail(run: Run, tmp_path: Path) -> None:
    report = compared(run, labelled(run, lambda score, _: score >= CUT), tmp_path)
    assert failed(report.gate) == {LIKENESS}
    assert figures(report)[KAPPA]["value"] == pytest.approx(1)
    assert figures(report)[JUDGE]["value"] == figures(report)[PEOPLE]["value"]


def test_gate_reads_the_runs_label_file_and_reports_missing_labels(run: Run) -> None:
    path = run.workspace.path(run.config.judge.labels.path)
    path.unlink(missing_ok=True)
    result = evaluate("judge_agreement", Evidence(run), 1)
    assert result.status is Status.ERROR
    assert "the judge is uncalibrated until people have labelled dialogues; `rc1 label` writes a sheet" in result.error
    put(run, labelled(run, fair))
    passing = evaluate("judge_agreement", Evidence(run), 1)
    assert passing.status is Status.PASSED
    assert Evidence(run).label("labels") in passing.evidence
    put(run, labelled(run, fair, n=49))
    assert failed(evaluate("judge_agreement", Evidence(run), 2)) == {LABELLED}


def test_ticket_pins_labels_unless_the_gate_is_waived(run: Run) -> None:
    put(run, labelled(run, fair))
    assert "labels" in bound(run)
    waived = open_run(
        profile="local", workspace=run.workspace.root, overrides=(*SMALL, "gates.waivers={judge_agreement: none yet}")
    )
    assert "labels" not in bound(waived)
    assert evaluate("judge_agreement", Evidence(waived), 1).status is Status.WAIVED
    shipped = open_run(profile="local", workspace=run.workspace.root, overrides=SMALL)
    assert "uncalibrated" in evaluate("judge_agreement", Evidence(shipped), 1).waiver
    assert "labels" in bound(open_run(profile="prod", workspace=run.workspace.root))
