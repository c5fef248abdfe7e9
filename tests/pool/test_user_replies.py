"""A row contains both replies of its user, whether or not its dialogue asks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rc1_lib.config.judge import TAKES_PATH
from rc1_lib.pool.dialogue import UNSURE, write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import Pack, Template, load_pack
from rc1_lib.records import Bucket, Row
from rc1_lib.run import Run
from rc1_lib.sources.embedded import generate


@pytest.fixture(scope="module")
def rows(built: Run) -> list[Row]:
    names = (built.config.pool.path, built.config.shadow.path, TAKES_PATH)
    return [json.loads(line) for name in names for line in built.workspace.path(name).open("rb")]


@pytest.fixture(scope="module")
def pack(built: Run) -> Pack:
    return load_pack(built.workspace.find(built.config.pool.templates_dir))


def replies_in(row: Row) -> set[str]:
    return {message["content"] or "" for message in row["messages"] if message.get("name") == "ask_user"}


def phrases(row: Row, templates: Mapping[str, Template]) -> list[str]:
    """All replies that the row's template allows to a question that is answered."""
    template, slot = templates[row["template_id"]], row.get("slot")
    return [phrase.format(value=slot["value"]) for phrase in template.reply] if slot else [*template.nothing_missing]


def answered(row: Row) -> str:
    """The user's reply to a question about the missing information, or to any question if nothing is missing."""
    replies = row.get("user_replies")
    assert replies is not None
    return replies["gives"] if replies["gives"] is not None else replies["otherwise"]


def test_every_row_has_both_replies_in_the_words_of_its_template(rows: list[Row], pack: Pack) -> None:
    templates = {template.id: template for template in pack.templates}
    for row in rows:
        replies = row.get("user_replies")
        assert replies is not None
        assert answered(row) in phrases(row, templates), row["id"]
        assert (replies["gives"] is not None) == row["needs_clarification"]
        if row["needs_clarification"]:
            assert replies["otherwise"] == UNSURE[row["lang"]]


def test_user_replies_of_a_row_match_its_dialogue(rows: list[Row]) -> None:
    asking = [row for row in rows if row["asked"]]
    assert Counter(row["needs_clarification"] for row in asking).keys() == {True, False}
    assert all(replies_in(row) == {answered(row)} for row in asking)


def test_rows_that_do_not_ask_use_every_phrase(rows: list[Row], pack: Pack) -> None:
    """The row's id picks the phrase; it is not always the first one."""
    templates = {template.id: template for template in pack.templates}
    not_asking = [row for row in rows if not row["asked"] and not row["needs_clarification"]]
    places = Counter(phrases(row, templates).index(answered(row)) for row in not_asking)
    assert len(places) > 1 and min(places.values()) > len(not_asking) // 10


@pytest.mark.parametrize("bucket", ["easy", "hard"])
def test_user_replies_do_not_depend_on_take_or_split(built: Run, pack: Pack, bucket: Bucket) -> None:
    """The replies of a row that does not ask depend on its id alone, not on a random draw."""
    never = built.config.pool.model_copy(update={"clarify_rate": 0.0})
    for number, question in enumerate(generate("gsm8k", 40, 5, 0.3)):
        planned = PlannedRow(f"pool-gsm8k-{number:06d}", "pool", question, 0)
        first, again = (write_row(planned, bucket, never, pack, take) for take in (0, 3))
        renamed = write_row(replace(planned, split="shadow"), bucket, never, pack)
        if first is not None and again is not None and renamed is not None:
            assert first.get("user_replies") == again.get("user_replies") == renamed.get("user_replies")
