"""Records of episodes: which are rejected, and that a file holds them unchanged."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.evaluation.answers import check_held_out, prompts_sha256
from rc1_lib.evaluation.episodes import (
    EvaluationError,
    Played,
    checked,
    episode_frame,
    read_episodes,
    record_of,
    records_of,
)
from tests.evaluation.tables import episode, outcome, row, table


def test_records_are_matched_with_rows_by_id() -> None:
    episodes = [Played("row-0002", outcome(), ()), Played("row-0001", outcome(right=False), ())]
    records = records_of(episodes, [row(1), row(2)], policy="sft", mode="sampled", seed=1)
    assert [(record.row_id, record.solved) for record in records] == [("row-0002", True), ("row-0001", False)]
    with pytest.raises(EvaluationError, match="row-0002"):
        records_of(episodes, [row(1)], policy="sft", mode="sampled", seed=1)


def test_unfinished_episode_is_rejected() -> None:
    with pytest.raises(EvaluationError, match=r"episode .*'row-0001'"):
        episode(1, status=EpisodeStatus.RUNNING)


def test_row_that_disagrees_with_its_episode_is_rejected() -> None:
    with pytest.raises(EvaluationError, match="needs_clarification"):
        record_of(outcome(needs=True), row(1), policy="ppo", mode="sampled", seed=1)


def test_duplicate_episode_is_rejected() -> None:
    with pytest.raises(EvaluationError, match=r"seed 1 .*'row-0001'"):
        episode_frame([episode(1), episode(1)])


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (pl.lit(None, pl.Boolean).alias("solved"), "solved"),
        (pl.lit("beam").alias("mode"), "mode 'beam'"),
        (pl.lit("running").alias("status"), "status 'running'"),
    ],
)
def test_damaged_column_is_named(damage: pl.Expr, named: str) -> None:
    with pytest.raises(EvaluationError, match=named):
        checked(table(prompts=9).with_columns(damage))


def test_episodes_survive_a_write_and_read(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    frame = table(prompts=9)
    frame.write_ndjson(path)
    assert read_episodes(path).equals(frame)


@pytest.mark.parametrize("content", [None, "", "no json\n", '{"policy": "ppo"}\n'])
def test_missing_or_invalid_episode_file_is_rejected(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "episodes.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(EvaluationError, match=r"episodes\.jsonl: cannot be read"):
        read_episodes(path)


def test_evaluation_prompt_seen_in_training_is_rejected() -> None:
    check_held_out([row(1), row(2)], [row(3)])
    with pytest.raises(EvaluationError, match="row-0002"):
        check_held_out([row(1), row(2)], [row(2)])
    with pytest.raises(EvaluationError, match="row-0001"):
        check_held_out([row(1)], [row(3, source_id="source-0001")])


def test_prompts_fingerprint_depends_on_values_and_not_on_order() -> None:
    assert prompts_sha256([row(1), row(2)]) == prompts_sha256([row(2), row(1)])
    assert prompts_sha256([row(1), row(2)]) != prompts_sha256([row(1), row(2, cue=False)])
