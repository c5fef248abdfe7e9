"""Replaying a row's recorded dialogue through the environment must give the recorded messages and outcome."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from rc1_lib.environment.episode import Episode, as_row
from rc1_lib.environment.trl import ToolError, environment_factory
from rc1_lib.environment.world import World
from rc1_lib.rows.chat import add_counts
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.rows.schema import check_rows
from rc1_lib.run import Run
from tests.environment.replays import EXACT, check_replay, replayed, rows_of


def test_replay_reproduces_every_bundled_dialogue_and_its_outcome(built: Run) -> None:
    assert check_replay(built) > 300


def test_messages_with_parsed_calls_play_like_text(built: Run) -> None:
    for row, plain in list(rows_of(built))[:200]:
        episode = Episode(World(row), EXACT)
        for message in row["messages"]:
            if message["role"] == "assistant":
                episode.send(message)
        assert episode.messages == plain["messages"]
        assert episode.outcome().solved == row["solved"]


def test_episodes_pass_the_row_schema_and_counts_agree(built: Run) -> None:
    played = [as_row(row, replayed(row)) for row, _ in list(rows_of(built))[:300]]
    frame = pl.DataFrame(played, schema=pl.Schema(ROW_COLUMNS))
    counted = add_counts(check_rows(frame, Path("episodes.jsonl")))
    episodes = [replayed(row).outcome() for row, _ in list(rows_of(built))[:300]]
    assert counted["clarifications"].to_list() == [outcome.asked for outcome in episodes]
    assert counted["turns"].to_list() == [outcome.turns for outcome in episodes]
    assert counted["tool_hops"].to_list() == [outcome.hops for outcome in episodes]


def test_tools_called_one_by_one_as_by_trl_give_the_same_observations(built: Run) -> None:
    environment = environment_factory(EXACT)()
    for row, plain in list(rows_of(built))[:200]:
        assert environment.reset(**row) is None
        calls = [entry["function"] for message in plain["messages"] for entry in message.get("tool_calls", ())]
        expected = [message["content"] for message in plain["messages"] if message["role"] == "tool"]
        found = []
        for function in calls:
            tool = getattr(environment, function["name"])
            try:
                found.append(tool(**orjson.loads(function["arguments"])))
            except ToolError as error:  # pragma: no cover - the defect that this test looks for
                found.append(f"error: {error}")
        assert found == expected
