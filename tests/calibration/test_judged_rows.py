"""Judged rows: dialogues with high variance are listed, and a judge without scores is an error."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from rc1_lib.calibration.judged_rows import judge_rows
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.judge import providers
from rc1_lib.judge.calls import Answer, Ask
from rc1_lib.judge.judge import open_store
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


class Keyword:
    """A free provider of one's own, as docs/how-to/own-judge.md describes it."""

    name = "keyword"

    async def ask(self, ask: Ask) -> Answer:
        grades = {name: 0.25 for name in ask.schema["required"] if name != "reason"}
        return Answer(
            text=json.dumps({"reason": "So.", **grades}), model="keyword-1", request_id=uuid.uuid4().hex, tokens_in=9,
            tokens_out=9, billable=True, finish="stop",
        )  # fmt: skip

    async def aclose(self) -> None:
        pass


def test_free_provider_of_ones_own_grades_at_no_cost_and_without_a_budget(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "PROVIDERS", {**providers.PROVIDERS, "keyword": lambda _: Keyword()})
    run = open_run(workspace=tmp_path, overrides=[*SMALL, "judge.provider=keyword", "judge.budget.max_calls=1"])
    found = judge_rows(run, evidence.rows("shadow").head(3), store="data/judge/apart.sqlite")
    assert found.models == ("keyword-1",) and set(found.rows["answered"]) == {0.25}
    assert (found.calls, found.usd) == (9, 0.0)
    with open_store(run, "data/judge/apart.sqlite") as store:
        assert set(store.log()["cost_usd"]) == {0.0}


def test_judge_without_any_score_is_an_error_with_the_reason(evidence: Evidence, tmp_path: Path) -> None:
    with running_gateway() as gateway:
        gateway.replies = lambda *_: completion(json.dumps({"reason": "84", **dict.fromkeys(DIMENSIONS, 84)}))
        run = open_run(workspace=tmp_path, overrides=[*SMALL, *overrides(gateway.url)])
        with pytest.raises(RC1Error, match=r"scored none of 3 dialogues in 18 calls.*answered = 84"):
            judge_rows(run, evidence.rows("shadow").head(3))
