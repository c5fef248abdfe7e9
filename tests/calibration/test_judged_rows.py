"""Judged rows: dialogues with high variance are listed, and a judge without scores is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rc1_lib.calibration.judged_rows import judge_rows
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL
from tests.judge.bench import overrides
from tests.judge.gateway import completion, running_gateway
from tests.judge_server import Behaviour, running

UNSTABLE = "reports/rc1/unstable_samples.jsonl"


def unstable_samples(run: Run) -> list[dict[str, object]]:
    path = run.workspace.path(UNSTABLE)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_list_of_high_variance_dialogues_is_updated_with_each_judging(evidence: Evidence, tmp_path: Path) -> None:
    rows = evidence.rows("shadow").head(5)
    with running(Behaviour(delay="zero")) as server:

        def judging(*settings: str) -> Run:
            return open_run(workspace=tmp_path, overrides=[*SMALL, *overrides(server.base_url), *settings])

        strict, usual = judging("gates.stability.max_variance=0.0000001"), judging()
        found = judge_rows(strict, rows.head(3)).rows
        assert found["unstable"].to_list() == [True] * 3
        assert [one["ids"] for one in unstable_samples(strict)] == [[name] for name in rows["id"].head(3)]
        assert {len(one["replies"]) for one in unstable_samples(strict)} == {3}

        judge_rows(strict, rows[2:])
        assert [one["ids"] for one in unstable_samples(strict)] == [[name] for name in rows["id"]], (
            "each is listed once"
        )

        judge_rows(usual, rows.head(4))
        assert [one["ids"] for one in unstable_samples(usual)] == [[rows["id"][4]]], (
            "a dialogue that became stable is removed"
        )

        another = judging("judge.model=another")
        judge_rows(another, rows.head(1))
        assert unstable_samples(another) == [], "another judge has its own list"


def test_judge_without_any_score_is_an_error_with_the_reason(evidence: Evidence, tmp_path: Path) -> None:
    with running_gateway() as gateway:
        gateway.replies = lambda *_: completion(json.dumps({"reason": "84", **dict.fromkeys(DIMENSIONS, 84)}))
        run = open_run(workspace=tmp_path, overrides=[*SMALL, *overrides(gateway.url)])
        with pytest.raises(RC1Error, match=r"scored none of 3 dialogues in 18 calls.*answered = 84"):
            judge_rows(run, evidence.rows("shadow").head(3))
