"""Agreement of judge and people on real dialogues: a fair annotator passes, each kind of unsound labels fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rc1_lib.calibration.judge_agreement import judge_agreement
from rc1_lib.calibration.labelled_rows import CALIBRATED, MEAN, OLD
from rc1_lib.calibration.weight_calib import label_calib
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence, bound
from rc1_lib.gate_report import GateReport
from rc1_lib.gates.judge_agreement import LABELLED, LIKENESS, SECOND
from rc1_lib.judge import rubric
from rc1_lib.judge.prompt import read_spec
from rc1_lib.labels.label_file import read_labels
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.gate_list import evaluate
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
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


def compared(run: Run, rows: Rows, tmp_path: Path, **given: Any) -> GateReport:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return judge_agreement(run, read_labels(path), **given)


def overall(report: GateReport) -> dict[str, Any]:
    """The figures of the compared score over all dialogues."""
    return dict(report.body["agreement"][0]["figures"])


def test_fair_annotator_on_a_hundred_dialogues_passes(run: Run, tmp_path: Path) -> None:
    found = compared(run, labelled(run, fair), tmp_path)
    assert failed(found.gate) == set()
    figures = overall(found)
    assert found.body["judged_by"]["score"] == OLD
    assert 0.7 < figures["kappa"]["value"] < 0.95 < 1
    assert figures["kappa"]["low"] < figures["kappa"]["value"] < figures["kappa"]["high"]
    assert figures["agreement"]["value"] > figures["kappa"]["value"]
    assert found.body["labels"]["dialogues"] == 100
    assert {line["score"] for line in found.body["agreement"]} == {
        OLD, "answered", "grounded", "well_formed", "economical", "reasoned", "concise", "restrained",
        *run.config.reward.rules,
    }  # fmt: skip


def test_shuffled_labels_fail(run: Run, tmp_path: Path) -> None:
    rows = labelled(run, fair)
    labels = np.random.default_rng(5).permutation([row["label"] for row in rows]).tolist()
    shuffled = [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]
    assert {"kappa with people", "rank correlation with people"} <= failed(compared(run, shuffled, tmp_path).gate)


def test_constant_labels_fail_despite_high_agreement(run: Run, tmp_path: Path) -> None:
    lenient = open_run(
        profile="local", workspace=run.workspace.root, overrides=(*run.overrides, "judge.verdict_at=0.7")
    )
    found = compared(lenient, labelled(run, lambda *_: "good"), tmp_path)
    figures = overall(found)
    assert figures["agreement"]["value"] > 0.85
    assert figures["kappa"]["value"] == pytest.approx(0, abs=1e-9)
    assert {"bad dialogues, by people", "kappa with people", "rank correlation with people"} <= failed(found.gate)


def test_labels_copied_from_the_judge_fail(run: Run, tmp_path: Path) -> None:
    own = compared(run, labelled(run, lambda score, _: score >= CUT), tmp_path)
    assert failed(own.gate) == {LIKENESS, SECOND}
    assert overall(own)["kappa"]["value"] == pytest.approx(1)
    scores = compared(run, labelled(run, lambda score, _: round(score, 3)), tmp_path)
    assert LIKENESS in failed(scores.gate)


def test_copies_of_a_dialogue_count_once(run: Run, tmp_path: Path) -> None:
    few = labelled(run, fair, n=40)
    copies = [{**row, "id": f"copy-{place}"} for place, row in enumerate([*few, *few, *few])]
    once, thrice = compared(run, few, tmp_path), compared(run, copies, tmp_path)
    assert {check.name: check.value for check in thrice.gate.failures}[LABELLED] == 40
    assert failed(thrice.gate) == failed(once.gate)
    for name in ("kappa", "agreement", "people", "rank correlation"):
        assert overall(thrice)[name]["value"] == pytest.approx(overall(once)[name]["value"])
        assert overall(thrice)[name]["high"] == pytest.approx(overall(once)[name]["high"])


def test_disagreeing_annotators_share_the_weight_of_a_dialogue(run: Run, tmp_path: Path) -> None:
    rows = labelled(run, fair, n=60)
    torn = [{**row, "label": not row["label"], "annotator": "other"} for row in rows]
    found = compared(run, [*({**row, "annotator": "one"} for row in rows), *torn], tmp_path)
    assert found.body["labels"]["annotators"] == 2
    assert found.body["people_among_themselves"] < 0
    assert overall(found)["people"]["value"] == pytest.approx(0.5)


def as_scored(run: Run, rows: Rows, model: str | None, spec: str | None) -> list[dict[str, Any]]:
    """The rows as a file that already has scores."""
    rng = np.random.default_rng(3)
    names = list(read_spec(run).dimensions)
    return [
        {
            "id": f"row-{place}", "label": row["label"], "model": model, "spec_sha256": spec,
            "dimensions": {name: float(np.clip(row["label"] * 0.3 + 0.5 + 0.2 * rng.random(), 0, 1)) for name in names},
        }
        for place, row in enumerate(rows)
    ]  # fmt: skip


def test_labels_scored_by_another_version_or_instructions_do_not_count(run: Run, tmp_path: Path) -> None:
    rows, spec, model = labelled(run, fair), read_spec(run).sha256, rubric.version()
    assert LABELLED not in failed(compared(run, as_scored(run, rows, model, spec), tmp_path).gate)
    for others in ((model, "0" * 64), ("another-version", spec), ("another-version", None)):
        found = compared(run, as_scored(run, rows, *others), tmp_path)
        (check,) = [check for check in found.gate.failures if check.name == LABELLED]
        assert check.value == 0
        assert "100 more were scored by another model version or with other instructions" in check.advice


def test_scores_without_a_judges_name_do_not_count_in_a_round(run: Run, tmp_path: Path) -> None:
    rows = as_scored(run, labelled(run, fair), None, None)
    assert LABELLED not in failed(compared(run, rows, tmp_path).gate)
    assert LABELLED in failed(compared(run, rows, tmp_path, judge_again=True).gate)


def test_round_judges_dialogues_again_despite_scores_in_the_file(run: Run, tmp_path: Path) -> None:
    rows = labelled(run, fair)
    labels = np.random.default_rng(5).permutation([row["label"] for row in rows]).tolist()
    forged = [
        {**row, "label": label, "dimensions": dict.fromkeys(read_spec(run).dimensions, 0.4 + 0.59 * label)}
        for row, label in zip(rows, labels, strict=True)
    ]
    assert overall(compared(run, forged, tmp_path))["kappa"]["value"] > 0.99
    assert "kappa with people" in failed(compared(run, forged, tmp_path, judge_again=True).gate)


def test_buckets_and_labelled_criteria_are_reported_separately(run: Run, tmp_path: Path) -> None:
    rows = [
        {**row, "bucket": ("easy", "hard")[place % 2], "labels": {"concise": place % 3 > 0}}
        for place, row in enumerate(labelled(run, fair))
    ]
    lines = compared(run, rows, tmp_path).body["agreement"]
    assert [line["bucket"] for line in lines if line["score"] == OLD] == [None, "easy", "hard"]
    against = {line["score"]: line["against"] for line in lines}
    assert against == {score: "labels.concise" if score == "concise" else "label" for score in against}
    (concise,) = [line for line in lines if line["score"] == "concise" and line["bucket"] is None]
    assert concise["figures"]["people"]["value"] == pytest.approx(66 / 100)


def test_unlabelled_dialogues_count_towards_the_share_of_good_ones(run: Run, tmp_path: Path) -> None:
    rows = labelled(run, fair, n=110)
    blank = [{**row, "label": None} if place >= 60 else row for place, row in enumerate(rows)]
    found = compared(run, blank, tmp_path)
    share, full = found.body["share_good"], compared(run, rows, tmp_path)
    assert found.body["labels"]["dialogues"] == 60
    assert share["good, by the judge"]["value"] == pytest.approx(overall(full)["judge"]["value"])
    assert share["good, corrected"]["low"] < overall(full)["people"]["value"] < share["good, corrected"]["high"]
    # If every dialogue is labelled, the corrected share is that of the labels.
    everything = full.body["share_good"]["good, corrected"]["value"]
    assert everything == pytest.approx(overall(full)["people"]["value"])


def test_share_of_good_dialogues_is_estimated_for_another_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "others.jsonl"
    bad = [row for row in labelled(run, lambda score, _: score) if row["label"] < CUT]
    path.write_text("".join(json.dumps({"messages": row["messages"]}) + "\n" for row in bad), encoding="utf-8")
    found = compared(run, labelled(run, fair), tmp_path, among=read_labels(path, needed=False))
    assert found.body["share_good"]["good, by the judge"]["value"] == 0
    assert found.body["share_good"]["good, corrected"]["value"] < 0.1


def test_gate_reads_the_runs_label_file_and_reports_missing_labels(run: Run) -> None:
    path = run.workspace.path(run.config.judge.labels.path)
    path.unlink(missing_ok=True)
    result = evaluate("judge_agreement", Evidence(run), 1)
    assert result.status is Status.ERROR
    assert "the judge is uncalibrated until people have labelled dialogues; `rc1 label` asks for labels" in result.error
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


def test_calibrated_weights_are_compared_when_present(fresh_copy: Callable[..., Run], tmp_path: Path) -> None:
    run = fresh_copy("gates.shared.resamples=20")
    found = compared(run, labelled(run, fair), tmp_path)
    assert found.body["judged_by"]["score"] == CALIBRATED
    assert {OLD, CALIBRATED} < {line["score"] for line in found.body["agreement"]}


def test_weights_are_fitted_to_labels_by_group_without_changing_the_run(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for place in range(240):
        group, knows = f"g{place // 4}", rng.random()
        scores = {"knows": knows, "length": rng.random(), "luck": rng.random()}
        rows.append(
            {"id": str(place), "group": group, "label": bool(knows + 0.3 * rng.normal() > 0.5), "dimensions": scores}
        )
    path = tmp_path / "scored.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = label_calib(run, read_labels(path))
    weights = found.body["weights"]
    assert weights["knows"] == max(weights.values()) == pytest.approx(run.config.gates.weights.max_weight)
    assert found.body["old_weights"] == pytest.approx(dict.fromkeys(weights, 1 / 3))
    assert [fold["groups"] for fold in found.body["calibration"]["folds"]] == [12] * 5
    assert found.gate.status is Status.PASSED, found.gate.failures
    assert not run.workspace.path(run.config.weights).exists()
    labels = rng.permutation([row["label"] for row in rows]).tolist()
    shuffled = [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in shuffled), encoding="utf-8")
    assert label_calib(run, read_labels(path)).gate.status is Status.FAILED


def test_weights_fitted_to_dialogues_cover_judge_criteria_and_rules(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labelled(run, fair)), encoding="utf-8")
    found = label_calib(run, read_labels(path))
    assert set(found.body["weights"]) == {*read_spec(run).dimensions, *run.config.reward.rules}
    assert found.body["old_weights"] == dict(run.config.reward.old_weights)


def test_foreign_criteria_are_scored_by_their_mean(run: Run, tmp_path: Path) -> None:
    rows = [{"id": str(place), "dimensions": {"a": place / 60, "b": 0.5}, "label": place >= 30} for place in range(60)]
    found = compared(run, rows, tmp_path)
    assert found.body["judged_by"] == {"score": MEAN, "weights": {"a": 0.5, "b": 0.5}}
    assert overall(found)["rank correlation"]["value"] > 0.8


def test_calibration_on_too_few_labels_is_an_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labelled(run, fair, n=3)), encoding="utf-8")
    with pytest.raises(RC1Error, match=r"^3 .* 9 criteria "):
        label_calib(run, read_labels(path))
