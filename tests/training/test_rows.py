"""The selection of training, held-out and shadow rows."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training import rows as row_selection
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.rows import HOLDS_MARK, REPEATED, Selection, select_rows, unseen_rows
from tests.training.tiny_world import learned_tokenizer, tiny_run, write_pool

Select = Callable[..., Selection]


@pytest.fixture
def workspace(tmp_path: Path, mixed_pool: list[dict[str, Any]]) -> Path:
    write_pool(tmp_path, mixed_pool)
    return tmp_path


@pytest.fixture
def select(workspace: Path, form: ChatFormat) -> Select:
    return lambda *overrides: select_rows(tiny_run(workspace, *overrides), form)


def ids(rows: list[Any]) -> set[str]:
    return {row["id"] for row in rows}


def change_buckets(run: Run, change: Callable[[str], str]) -> None:
    path = run.workspace.path(run.config.difficulty.metrics_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "bucket": change(line["bucket"])}) + "\n" for line in lines))


def test_every_pool_row_is_trained_held_out_or_counted_as_left_out(
    select: Select, mixed_pool: list[dict[str, Any]]
) -> None:
    found = select("training.held_out.prompts=100000")
    left_out = found.report["left_out"]
    assert len(found.train) + len(found.held_out) + sum(left_out.values()) == len(mixed_pool)
    assert not ids(found.train) & ids(found.held_out)
    chinese = sum(row["lang"] == "zh" for row in mixed_pool)
    assert left_out["language zh"] == chinese > 0
    assert left_out["longer than 420 tokens"] > 0


def test_no_source_question_is_both_trained_and_held_out(select: Select) -> None:
    found = select("training.held_out.prompts=100000", "training.held_out.share=0.4")
    sources = Counter(row["source_id"] for row in found.train)
    assert max(sources.values()) == 2, "the pool must use questions twice to show a wrong split"
    assert not sources.keys() & {row["source_id"] for row in found.held_out}


def test_shadow_rows_have_questions_of_no_other_set(select: Select, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_selection, "SHADOW_ROWS", 6)
    asked = ("training.held_out.prompts=9", "training.held_out.share=0.4")
    looking = "training.eval_shadow.every_steps=2"
    plain, found = select(*asked), select(*asked, looking)
    others = {row["source_id"] for row in (*found.train, *found.held_out)}
    assert len(found.shadow) == 6 and not others & {row["source_id"] for row in found.shadow}
    assert plain.shadow == [] and (ids(plain.train), ids(plain.held_out)) == (ids(found.train), ids(found.held_out))
    monkeypatch.setattr(row_selection, "SHADOW_ROWS", 5000)
    with pytest.raises(RC1Error, match=r"training\.eval_shadow .*5000 .* \d+ .*training\.held_out\.prompts"):
        select(*asked, looking)


def test_unseen_rows_have_questions_that_nobody_asks_and_repeat_none(
    workspace: Path, mixed_pool: list[dict[str, Any]], form: ChatFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_selection, "SHADOW_ROWS", 6)
    run = tiny_run(
        workspace, "training.held_out.prompts=9", "training.held_out.share=0.6", "training.eval_shadow.every_steps=2"
    )
    rows = [{**copy.deepcopy(row), "source": "own"} for row in mixed_pool]
    write_pool(workspace, rows)
    found, unseen = select_rows(run, form), unseen_rows(run, form, ())
    known = {row["source_id"] for part in (found.train, found.held_out, found.shadow) for row in part}
    assert len(unseen) == 9 and not known & {row["source_id"] for row in unseen}
    first, second = unseen[0], unseen[1]
    others = unseen_rows(run, form, {first["source_id"]})
    assert first["source_id"] not in {row["source_id"] for row in others}
    learned = next(row for row in found.train if row["task"] == second["task"])
    for row in rows:
        if row["source_id"] == second["source_id"]:
            row |= {"question": f"Now: {learned['question']}", "support": learned["support"]}
    write_pool(workspace, rows)
    assert second["source_id"] not in {row["source_id"] for row in unseen_rows(run, form, ())}
    every = {str(row["source_id"]) for row in rows}
    with pytest.raises(RC1Error, match=r"no evaluation has asked; raise pool\.n"):
        unseen_rows(run, form, every)


def test_bucket_is_the_measured_one(select: Select, workspace: Path) -> None:
    turned = {"easy": "hard", "hard": "easy", "medium": "medium"}
    before = {row["id"]: row["bucket"] for row in select().train}
    change_buckets(tiny_run(workspace), lambda bucket: turned[bucket])
    assert {row["id"]: row["bucket"] for row in select().train} == {key: turned[old] for key, old in before.items()}


def test_empty_bucket_is_rejected_with_the_remedy(select: Select, workspace: Path) -> None:
    change_buckets(tiny_run(workspace), lambda bucket: "medium" if bucket == "hard" else bucket)
    with pytest.raises(RC1Error, match=r"jsonl: no hard rows .* of the \d+ .*training\.max_tokens"):
        select()


@pytest.mark.parametrize("key", ["pool", "metrics"])
def test_missing_pool_or_metrics_is_rejected_with_the_remedy(select: Select, workspace: Path, key: str) -> None:
    config = tiny_run(workspace).config
    path = workspace / (config.seed_pool if key == "pool" else config.difficulty.metrics_path)
    path.unlink()
    with pytest.raises(RC1Error, match=f"{path.name}: .*`rc1 preflight`$"):
        select()


def test_rows_with_a_special_token_of_this_tokenizer_are_left_out_and_counted(
    workspace: Path, mixed_pool: list[dict[str, Any]]
) -> None:
    """`consistency` knows Qwen3's special tokens; another tokenizer may have more."""
    tokenizer = learned_tokenizer(mixed_pool)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[TURN]"]})
    rows = copy.deepcopy(mixed_pool)
    forged = next(row for row in rows if row["lang"] == "en" and row["messages"][2].get("tool_calls"))
    forged["messages"][2]["tool_calls"][0]["function"]["arguments"] = r'{"query": "a \u005bTURN]"}'
    write_pool(workspace, rows)
    found = select_rows(tiny_run(workspace, "training.max_tokens=2000"), ChatFormat(tokenizer))
    assert found.report["left_out"][HOLDS_MARK] == 1
    assert forged["id"] not in ids([*found.train, *found.held_out])


def test_row_that_rewords_a_held_out_question_is_left_out(
    workspace: Path, mixed_pool: list[dict[str, Any]], form: ChatFormat
) -> None:
    """A source may ask a question twice: training on one would raise success on the other."""
    rows = [{**copy.deepcopy(row), "source": "own"} for row in mixed_pool]
    write_pool(workspace, rows)
    before = select_rows(tiny_run(workspace), form)
    asked, forged = before.held_out[0], next(row for row in before.train if row["task"] == before.held_out[0]["task"])
    for row in rows:
        if row["id"] == forged["id"]:
            row |= {"question": f"Now: {asked['question']}", "support": asked["support"]}
    write_pool(workspace, rows)
    after = select_rows(tiny_run(workspace), form)
    assert ids(after.held_out) == ids(before.held_out)
    assert ids(before.train) - ids(after.train) == {forged["id"]}
    assert after.report["left_out"][REPEATED] == before.report["left_out"].get(REPEATED, 0) + 1


def test_pool_without_user_replies_is_rejected_with_the_remedy(select: Select, workspace: Path) -> None:
    path = workspace / tiny_run(workspace).config.seed_pool
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "user_replies": None}) + "\n" for row in rows))
    with pytest.raises(RC1Error, match=rf"`rc1 build-pool`.* {len(rows)} .*user_replies"):
        select()
