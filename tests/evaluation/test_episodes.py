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


def test_record_combines_row_and_outcome() -> None:
    guess = outcome(needs=True, asked=1, off_target=1)
    record = record_of(guess, row(0, task="gsm8k", bucket="hard"), policy="ppo", mode="greedy", seed=3)
    assert (record.policy, record.mode, record.seed, record.row_id) == ("ppo", "greedy", 3, "row-0000")
    assert (record.task, record.bucket, record.needs) == ("gsm8k", "hard", True)
    assert (record.right, record.solved, record.lucky) == (True, False, True)
    assert record.status == "answered"


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


def test_row_without_a_bucket_is_rejected() -> None:
    with pytest.raises(EvaluationError, match=r"'row-0001' .*bucket"):
        record_of(outcome(), row(1, bucket=None), policy="ppo", mode="sampled", seed=1)


def test_empty_evaluation_is_rejected() -> None:
    with pytest.raises(EvaluationError, match="no episode"):
        episode_frame([])


def test_duplicate_episode_is_rejected() -> None:
    with pytest.raises(EvaluationError, match=r"seed 1 .*'row-0001'"):
        episode_frame([episode(1), episode(1)])


def test_episodes_that_disagree_about_their_prompt_are_rejected() -> None:
    with pytest.raises(EvaluationError, match="row-0001"):
        episode_frame([episode(1, "sft"), episode(1, "ppo", prompt=row(1, bucket="hard"))])


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (pl.lit(None, pl.Boolean).alias("solved"), "solved"),
        (pl.lit("beam").alias("mode"), "mode 'beam'"),
        (pl.lit("running").alias("status"), "status 'running'"),
        (pl.lit("1").alias("asked"), "asked"),
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
    with pytest.raises(EvaluationError, match=r"episodes\.jsonl" if content is None else None):
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
