"""Records of evaluated episodes, and the frame from which all metrics are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, cast, get_args

import polars as pl

from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.errors import RC1Error
from rc1_lib.records import BUCKETS, Bucket, MeasuredRow, Task
from rc1_lib.task_specs import task_names

Mode = Literal["sampled", "greedy"]
MODES: tuple[Mode, ...] = get_args(Mode)
ENDS = tuple(status.value for status in EpisodeStatus if status is not EpisodeStatus.RUNNING)
OF_PROMPT = ("task", "bucket", "needs", "cue", "source_id")
"""Columns that belong to the prompt and are the same for every policy."""


class EvaluationError(RC1Error):
    """Episodes that cannot be evaluated."""


@dataclass(frozen=True, slots=True)
class Played:
    """An episode as an evaluation uses it; `messages` is the whole dialogue, including the prompt."""

    row_id: str
    outcome: EpisodeOutcome
    messages: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode of one policy on one held-out prompt; fields not listed are those of `EpisodeOutcome`.

    Attributes:
        policy: name of the policy, for example `sft` or `ppo`.
        mode: how its tokens were chosen.
        seed: the training seed that the comparison belongs to.
        row_id: id of the row; `task`, `bucket` and `source_id` are the row's as well.
        needs: whether information was missing.
        cue: whether the prompt sounds vague, whether or not information is missing.
        judged: the calibrated score of its dialogue in [0, 1]; None if it has no score or was not judged.
    """

    policy: str
    mode: Mode
    seed: int
    row_id: str
    task: Task
    bucket: Bucket
    source_id: str
    needs: bool
    cue: bool
    status: str
    right: bool
    solved: bool
    lucky: bool
    obtained: bool
    asked: int
    off_target: int
    turns: int
    hops: int
    tool_errors: int
    malformed: int
    tokens: int
    judged: float | None = None


_TYPES = {
    "float | None": pl.Float64,
    "str": pl.String,
    "int": pl.Int64,
    "bool": pl.Boolean,
    "Mode": pl.String,
    "Task": pl.String,
    "Bucket": pl.String,
}
SCHEMA: dict[str, Any] = {field.name: _TYPES[str(field.type)] for field in fields(EpisodeRecord)}
"""Column -> polars type of the frame, which has one row per episode."""
_ALLOWED = {"mode": MODES, "bucket": BUCKETS, "status": ENDS}
_ROW_KEYS = ("task", "bucket", "source_id", "needs_clarification", "cue")
IDENTITY = ("policy", "mode", "seed", "row_id")


def record_of(
    outcome: EpisodeOutcome, row: MeasuredRow, *, policy: str, mode: Mode, seed: int, judged: float | None = None
) -> EpisodeRecord:
    """Return the record of an episode on `row`.

    Raises:
        EvaluationError: when the episode is not over, the row lacks a key, or they disagree on whether something was
            missing.
    """
    lacking = [key for key in ("id", *_ROW_KEYS) if row.get(key) is None]
    if lacking:
        raise EvaluationError(
            f"row '{row.get('id')}' lacks {', '.join(lacking)}; evaluate rows of the pool's schema with their bucket"
        )
    if outcome.status is EpisodeStatus.RUNNING:
        raise EvaluationError(f"the episode of row '{row['id']}' is not over; an evaluation needs finished episodes")
    if outcome.needs != row["needs_clarification"]:
        raise EvaluationError(
            f"row '{row['id']}' has needs_clarification {row['needs_clarification']}, but its environment says "
            f"{outcome.needs}; the row and its slot do not match"
        )
    return EpisodeRecord(
        policy=policy, mode=mode, seed=seed, row_id=row["id"], task=row["task"], bucket=row["bucket"],
        source_id=row["source_id"], needs=outcome.needs, cue=row["cue"], status=outcome.status.value,
        right=outcome.right, solved=outcome.solved, lucky=outcome.lucky, obtained=outcome.obtained,
        asked=outcome.asked, off_target=outcome.off_target, turns=outcome.turns, hops=outcome.hops,
        tool_errors=outcome.tool_errors, malformed=outcome.malformed, tokens=outcome.tokens, judged=judged,
    )  # fmt: skip


def records_of(
    episodes: Iterable[Played],
    rows: Iterable[MeasuredRow],
    *,
    policy: str,
    mode: Mode,
    seed: int,
    judged: Mapping[str, float | None] | None = None,
) -> list[EpisodeRecord]:
    """Return the records of one policy's episodes; `judged` maps row ids to scores.

    Raises:
        EvaluationError: when an episode's row is missing; also whatever `record_of` raises.
    """
    known = {row["id"]: row for row in rows}
    records = []
    for episode in episodes:
        row = known.get(episode.row_id)
        if row is None:
            raise EvaluationError(f"an episode is about row '{episode.row_id}', which is not among the given rows")
        score = (judged or {}).get(episode.row_id)
        records.append(record_of(episode.outcome, row, policy=policy, mode=mode, seed=seed, judged=score))
    return records


_columns = attrgetter(*SCHEMA)


def episode_frame(records: Sequence[EpisodeRecord]) -> pl.DataFrame:
    """Return the records as a checked frame with the columns of `SCHEMA`."""
    return checked(pl.DataFrame([_columns(record) for record in records], schema=SCHEMA, orient="row"))


def read_episodes(path: Path) -> pl.DataFrame:
    """Read the episodes that `rc1_lib.evaluation.report` wrote.

    Raises:
        EvaluationError: when the file is missing or contains something else.
    """
    try:
        return checked(pl.read_ndjson(path, schema=SCHEMA))
    except (OSError, pl.exceptions.PolarsError, EvaluationError) as error:
        cause = str(error).partition("\n")[0]
        raise EvaluationError(f"{path}: cannot be read as evaluated episodes ({cause}); evaluate again") from None


def checked(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with the columns of `SCHEMA` in order if it holds valid episodes.

    Raises:
        EvaluationError: when there are no episodes, missing columns, other types, nulls, unknown names, duplicate
            episodes, or episodes that disagree about their prompt.
    """
    if not frame.height:
        raise EvaluationError("there are no episodes to evaluate; let both policies answer the held-out prompts first")
    wrong = [name for name, type_ in SCHEMA.items() if frame.schema.get(name) != type_]
    if wrong:
        raise EvaluationError(f"the episodes lack the columns {', '.join(wrong)}, or have them in another type")
    frame = frame.select(list(SCHEMA))
    with_nulls = [name for name in SCHEMA if name != "judged" and frame[name].null_count()]
    if with_nulls:
        raise EvaluationError(f"episodes without {', '.join(with_nulls)} cannot be evaluated; nothing may be null")
    for name, allowed in {"task": task_names(), **_ALLOWED}.items():
        unknown = frame.filter(~pl.col(name).is_in(list(allowed)))
        if unknown.height:
            raise EvaluationError(
                f"the episode of row '{unknown['row_id'][0]}' has {name} '{unknown[name][0]}', expected one of "
                f"{', '.join(allowed)}"
            )
    _check_once(frame)
    return frame


def _check_once(frame: pl.DataFrame) -> None:
    repeated = frame.filter(pl.struct(IDENTITY).is_duplicated())
    if repeated.height:
        first = cast(Mapping[str, Any], repeated.row(0, named=True))
        raise EvaluationError(
            f"{first['policy']}, {first['mode']}, seed {first['seed']} answers the prompt '{first['row_id']}' more "
            f"than once; an evaluation takes one episode of each"
        )
    inconsistent = (
        frame.group_by("row_id", maintain_order=True)
        .agg(pl.col(name).n_unique() for name in OF_PROMPT)
        .filter(pl.any_horizontal(pl.col(name) > 1 for name in OF_PROMPT))
    )
    if inconsistent.height:
        raise EvaluationError(
            f"episodes of the prompt '{inconsistent['row_id'][0]}' disagree in {', '.join(OF_PROMPT)}, which belong to "
            f"the prompt; let all policies answer the same rows"
        )
