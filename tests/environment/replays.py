"""Recorded dialogues of rows, replayed through the environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rc1_lib.config.judge import TAKES_PATH
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from tests.environment.worlds import qwen_text

# The scripted expert makes no failed call and no malformed turn, so none is allowed.
EXACT = Limits(turns=6, tokens=100_000, tool_errors=0, malformed=0, calls=8, turn_chars=8_000, argument_chars=500)

Row = dict[str, Any]


def rows_of(run: Run) -> Iterator[tuple[Row, Row]]:
    """Each row of pool, shadow set and takes: as columns hold it, and with plain chat messages."""
    names = [run.config.pool.path, run.config.shadow.path, TAKES_PATH]
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
    """Check that every replayed row has the recorded messages and outcome; return the number of questions asked."""
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
