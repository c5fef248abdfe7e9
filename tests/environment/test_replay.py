"""Every row's own dialogue, played again through the world, must come out as it stands in the row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from rc1_lib.environment.episode import Episode, as_row
from rc1_lib.environment.limits import Limits
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.trl import ToolError, environment_factory
from rc1_lib.environment.world import World
from rc1_lib.evidence import Evidence
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.gates import evaluate
from rc1_lib.records import Status
from rc1_lib.rows.counts import add_counts
from rc1_lib.rows.frame import ROW_COLUMNS, read_rows
from rc1_lib.rows.schema import check_rows
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL
from tests.environment.worlds import qwen_text

# The teacher fails no call and malforms no turn, so nothing is forgiven.
EXACT = Limits(turns=6, tokens=100_000, tool_errors=0, malformed=0, calls=8, turn_chars=8_000, argument_chars=500)

Row = dict[str, Any]


def rows_of(run: Run) -> Iterator[tuple[Row, Row]]:
    """Each row of the pool, the shadow set and its takes: as a column store has it, and as plain chat messages."""
    names = [run.config.pool.path, run.config.shadow.path, run.config.ablation.takes_path]
    for path in filter(Path.exists, map(run.workspace.path, names)):
        for row in read_rows(path).iter_rows(named=True):
            messages = [{key: value for key, value in line.items() if value is not None} for line in row["messages"]]
            yield row, {**row, "messages": messages}


def replayed(row: Row) -> Episode:
    episode = Episode(World(row), EXACT)
    for message in row["messages"]:
        if message["role"] == "assistant":
            episode.say(qwen_text(message))
    return episode


def check_replay(run: Run) -> int:
    asked = 0
    for row, plain in rows_of(run):
        episode = replayed(row)
        outcome = episode.outcome()
        assert episode.messages == plain["messages"], row["id"]
        assert outcome.status is EpisodeStatus.ANSWERED, row["id"]
        found = (outcome.answer, outcome.solved, outcome.lucky, outcome.asked, outcome.needs)
        assert found == tuple(row[name] for name in ("final", "solved", "lucky", "asked", "needs_clarification"))
        assert outcome.obtained == (row["needs_clarification"] and row["asked"] > 0), row["id"]
        assert (outcome.tool_errors, outcome.malformed, outcome.off_target) == (0, 0, 0), row["id"]
        asked += row["asked"]
    return asked


def test_the_teacher_gets_the_same_words_and_the_same_verdict_in_every_embedded_row(built: Run) -> None:
    assert check_replay(built) > 300


def test_the_teacher_gets_the_same_words_and_the_same_verdict_in_real_rows(shared_data: Path, tmp_path: Path) -> None:
    small = [*SMALL, "pool.n=300", "shadow.n=60", f"sources.use={shared_data}"]
    run = open_run(workspace=tmp_path, overrides=small)
    build_seed(run)
    assert check_replay(run) > 50
    verdict = evaluate("consistency", Evidence(run), 1)
    assert (verdict.status, verdict.failures, verdict.error) == (Status.PASSED, (), "")


def test_messages_with_ready_made_calls_play_like_text(built: Run) -> None:
    for row, plain in list(rows_of(built))[:200]:
        episode = Episode(World(row), EXACT)
        for message in row["messages"]:
            if message["role"] == "assistant":
                episode.send(message)
        assert episode.messages == plain["messages"]
        assert episode.outcome().solved == row["solved"]


def test_episodes_are_rows_that_schema_and_counts_read(built: Run) -> None:
    played = [as_row(row, replayed(row)) for row, _ in list(rows_of(built))[:300]]
    frame = pl.DataFrame(played, schema=pl.Schema(ROW_COLUMNS))
    counted = add_counts(check_rows(frame, Path("episodes.jsonl")))
    episodes = [replayed(row).outcome() for row, _ in list(rows_of(built))[:300]]
    assert counted["clarifications"].to_list() == [outcome.asked for outcome in episodes]
    assert counted["turns"].to_list() == [outcome.turns for outcome in episodes]
    assert counted["tool_hops"].to_list() == [outcome.hops for outcome in episodes]


def test_tools_called_one_by_one_as_trl_does_give_the_same_observations(built: Run) -> None:
    environment = environment_factory(EXACT)()
    for row, plain in list(rows_of(built))[:200]:
        assert environment.reset(**row) is None
        calls = [entry["function"] for message in plain["messages"] for entry in message.get("tool_calls", ())]
        expected = [message["content"] for message in plain["messages"] if message["role"] == "tool"]
        found = []
        for function in calls:
            tool = getattr(environment, function["name"])
            try:
                found.append(tool(**_arguments(function)))
            except ToolError as error:  # pragma: no cover - would be the defect that this test looks for
                found.append(f"refused: {error}")
        assert found == expected


def test_two_users_of_one_row_say_the_same(built: Run) -> None:
    for row, _ in list(rows_of(built))[:100]:
        silent = {**row, "messages": row["messages"][:2]}
        first, second = World(silent), World(row)
        assert first.ask_user("What do you mean?") == second.ask_user("What do you mean?")


def _arguments(function: dict[str, str]) -> dict[str, str]:
    arguments: dict[str, str] = orjson.loads(function["arguments"])
    return arguments
