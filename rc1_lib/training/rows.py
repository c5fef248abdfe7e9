"""Split the balanced pool into training rows and held-out rows.

Training reads only the pool that the ticket covers. For a model with one language or a small context, only the rows
that fit are used, from all three buckets. Rows left out are counted by reason.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
import polars as pl

from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.training import HELD_OUT_SEED, Training
from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.errors import RC1Error
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.records import BUCKETS, Bucket, MeasuredRow, Row
from rc1_lib.rows.playable import is_playable
from rc1_lib.rows.spoken import question_texts
from rc1_lib.run import Run
from rc1_lib.runtime.batches import gc_paused, slices
from rc1_lib.runtime.cache import Memo
from rc1_lib.text.leak_search import LeakSearch

if TYPE_CHECKING:
    from rc1_lib.training.chat_format import ChatFormat

NO_REPLIES = "without user_replies (rows of an older form, or from elsewhere)"
"""Reason to leave out valid rows: they hold no replies of the simulated user, so they cannot be played."""
HOLDS_MARK = "with a mark of the base's tokenizer in an assistant's words"
"""Reason to leave out rows whose text has a special token of this tokenizer. The gate `consistency` cannot know it."""

SHADOW_ROWS = 96
"""Rows that `training.eval_shadow` plays: shares then have a standard error of 0.05 at most."""
REPEATED = "with a question that repeats a held-out one"
"""Why rows are left out that would be learned by heart for the evaluation."""

AnyRow = TypeVar("AnyRow", bound=Row)

_seen = Memo[tuple[int, bool]](100_000)
"""Results of `_measure`, by tokenizer and row, because every seed and evaluation selects from the same pool."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The pool's rows that one model can use.

    Attributes:
        train: training rows, each with its `bucket`.
        held_out: rows of the evaluation, with other source questions.
        report: counts by bucket and by reason.
        pool_sha256: SHA-256 of the pool file as read.
        shadow: rows to evaluate during training (`training.eval_shadow`), with source questions of neither.
    """

    train: list[MeasuredRow]
    held_out: list[MeasuredRow]
    report: dict[str, Any]
    pool_sha256: str
    shadow: list[MeasuredRow] = field(default_factory=list)


@gc_paused()
def select_rows(run: Run, form: ChatFormat) -> Selection:
    """Read the balanced pool and split it.

    Args:
        run: configures the pool, its metrics, the languages, the maximum length and the held-out share.
        form: chat format of the model's tokenizer.

    Raises:
        RC1Error: if the pool or its metrics are missing or differ from the ticket, or if a bucket would be empty.
    """
    config = run.config
    train, kept_back, left_out, pool_sha256 = _split(run, form)
    fitting = len(train) + len(kept_back)
    held_out = _draw(config, kept_back, config.training.held_out.prompts)
    train, repeated = unlike(held_out, train, config)
    if repeated:
        left_out[REPEATED] = repeated
    for name, rows in (("training", train), ("the evaluation", held_out)):
        empty = [bucket for bucket in BUCKETS if not any(row["bucket"] == bucket for row in rows)]
        if empty:
            raise RC1Error(
                f"{run.workspace.path(config.seed_pool)}: no {' and no '.join(empty)} rows are left for {name}, of the "
                f"{fitting} rows that fit; {_advice(left_out)}"
            )
    report = _report(train, held_out, left_out)
    shadow = _shadow(config, kept_back, held_out)
    return Selection(train, held_out, report, pool_sha256, shadow)


def unseen_rows(run: Run, form: ChatFormat, asked: Collection[str]) -> list[MeasuredRow]:
    """Return held-out rows, as many as the evaluation has and drawn like them where there are enough, but others.

    Neither the evaluation nor `training.eval_shadow` asks their questions, and none repeats one of theirs or of
    training's.

    Args:
        run: as for `select_rows`.
        form: likewise.
        asked: source questions that other evaluations have asked.

    Raises:
        RC1Error: like `select_rows`, and if no such row is left.
    """
    config = run.config
    train, kept_back, _, _ = _split(run, form)
    prompts = config.training.held_out.prompts
    held_out = _draw(config, kept_back, prompts)
    known = [*held_out, *_shadow(config, kept_back, held_out)]
    known_questions = {*asked, *(row["source_id"] for row in known)}
    left, _ = unlike([*train, *known], [row for row in kept_back if row["source_id"] not in known_questions], config)
    if not left:
        raise RC1Error(
            f"{run.workspace.path(config.seed_pool)}: of {len(kept_back):,} held-out rows none is left that no "
            f"evaluation has asked; raise pool.n or training.held_out.share before the next training"
        )
    return _draw(config, left, prompts)


def _split(run: Run, form: ChatFormat) -> tuple[list[MeasuredRow], list[MeasuredRow], Counter[str], str]:
    """Return training rows, held-out rows, how many were left out for which reason, and the pool's SHA-256."""
    config = run.config
    buckets, words = buckets_and_words(run)
    pool = read_vouched(run, BALANCED.name, run.workspace.path(config.seed_pool))
    every, reasons = _filtered(pool, words, config, form)
    train: list[MeasuredRow] = []
    kept_back: list[MeasuredRow] = []
    for row, reason in zip(every, reasons, strict=True):
        if not reason:
            part = kept_back if is_kept_back(row, config) else train
            part.append({**row, "bucket": buckets[row["id"]]})
    return train, kept_back, Counter(filter(None, reasons)), hashlib.sha256(pool).hexdigest()


def unlike(held_out: Sequence[Row], train: list[AnyRow], config: RunConfig) -> tuple[list[AnyRow], int]:
    """Return the rows whose questions do not repeat a held-out one, by the gate `leakage`, and how many rows do.

    A source may ask one question twice with a word more: learned by heart, it would count as a gain.
    """
    # Embedded questions are draws of one grammar, each about a world of its own.
    foreign = [place for place, row in enumerate(train) if row["source"] != "embedded"]
    asked = [row for row in held_out if row["source"] != "embedded"]
    if not foreign or not asked:
        return train, 0
    held, own = (_asked(rows) for rows in (asked, [train[place] for place in foreign]))
    limits = config.gates.leakage
    found = LeakSearch(held, own, limits).over(own[part] for part in slices(len(own)))
    repeating = {foreign[row] for row in found.rows(limits)}
    return [row for place, row in enumerate(train) if place not in repeating], len(repeating)


def _asked(rows: Sequence[Row]) -> pl.Series:
    asked = [{"task": row["task"], "support": row["support"], "question": row["question"]} for row in rows]
    return question_texts(pl.DataFrame(asked, schema_overrides={"support": pl.List(pl.String)}))


def some_of(rows: Sequence[MeasuredRow], count: int | None) -> list[MeasuredRow]:
    """Return `count` rows in their order, or all; the same ones in whatever order the rows come.

    They are of all tasks, while the first `count` of rows ordered by id would be of one.
    """

    def place(row: MeasuredRow) -> bytes:
        return hashlib.sha256(f"judged/{row['id']}".encode()).digest()

    chosen = {row["id"] for row in sorted(rows, key=place)[:count]}
    return [row for row in rows if row["id"] in chosen]


def is_kept_back(row: Row, config: RunConfig) -> bool:
    """Whether a row's question is held out; nothing is learned from it."""
    return _share_of(row["source_id"]) < config.training.held_out.share


def _advice(left_out: Counter[str]) -> str:
    """Say how to get more rows, and how many were left out for which reason."""
    rebuild = ", or build the pool again (`rc1 build-pool`) to get playable rows" if left_out[NO_REPLIES] else ""
    shown = ", ".join(f"{count:,} {reason}" for reason, count in sorted(left_out.items()) if count)
    left = f". Left out: {shown}" if shown else ""
    return f"raise training.max_tokens, or add training.languages{rebuild}{left}"


def buckets_and_words(run: Run) -> tuple[dict[str, Bucket], dict[str, int]]:
    """Map row ids to buckets, and row ids to numbers of words in the dialogue.

    Raises:
        RC1Error: if the metrics are missing, damaged, or differ from the ticket.
    """
    content = read_vouched(run, METRICS.name, METRICS.path(run))
    try:
        metrics = pl.read_ndjson(content, schema_overrides={"id": pl.String}).select("id", "bucket", "len_tokens")
    except pl.exceptions.PolarsError as error:
        raise RC1Error(
            f"{METRICS.path(run)}: not a file of metrics ({error}); write it with {METRICS.command}"
        ) from None
    if sum(metrics.null_count().row(0)):
        raise RC1Error(f"{METRICS.path(run)}: a row lacks id, bucket or length; write it with {METRICS.command}")
    ids = metrics["id"].to_list()
    return (
        dict(zip(ids, metrics["bucket"].to_list(), strict=True)),
        dict(zip(ids, metrics["len_tokens"].to_list(), strict=True)),
    )


def _filtered(pool: bytes, words: dict[str, int], config: RunConfig, form: ChatFormat) -> tuple[list[Row], list[str]]:
    """Return the rows of a pool, and for each the reason to leave it out or ""."""
    training = config.training
    lines = list(io.BytesIO(pool))
    rows: list[Row] = [orjson.loads(line) for line in lines]
    # A row has at least as many tokens as words, so most long rows need not be tokenized.
    reasons = [unfit(row, config) or _too_long(words.get(row["id"], 0), training) for row in rows]
    open_ones = [place for place, reason in enumerate(reasons) if not reason]
    looked = _measure([rows[place] for place in open_ones], [lines[place] for place in open_ones], form)
    for place, (count, holds_mark) in zip(open_ones, looked, strict=True):
        reasons[place] = _too_long(count, training) or (HOLDS_MARK if holds_mark else "")
    return rows, reasons


def unfit(row: Row, config: RunConfig) -> str:
    """Return the reason to leave out a row, apart from its length, or ""."""
    if not is_playable(row):
        return NO_REPLIES
    return f"language {row['lang']}" if row["lang"] not in config.training.languages else ""


def _too_long(tokens: int, training: Training) -> str:
    return f"longer than {training.max_tokens} tokens" if tokens > training.max_tokens else ""


def _measure(rows: Sequence[Row], lines: Sequence[bytes], form: ChatFormat) -> list[tuple[int, bool]]:
    """Return for each row its number of tokens and whether it has a special token. Cached by process."""

    def find(places: list[int]) -> list[tuple[int, bool]]:
        dialogues = [rows[place]["messages"] for place in places]
        return list(zip(form.dialogue_lengths(dialogues), map(form.holds_mark, dialogues), strict=True))

    return _seen.get_all([hashlib.sha256(form.fingerprint + line).digest() for line in lines], find)


def _share_of(source_id: str) -> float:
    """Hash a source question to a number in [0, 1), so that all its rows land on the same side."""
    return int.from_bytes(hashlib.sha256(f"held-out/{source_id}".encode()).digest()[:6], "big") / 2**48


def _shadow(config: RunConfig, kept_back: Sequence[MeasuredRow], held_out: Sequence[MeasuredRow]) -> list[MeasuredRow]:
    """Draw the rows to evaluate during training, from questions that the final evaluation does not ask.

    Otherwise training could be tuned towards the evaluation's own questions.
    """
    asked = {row["source_id"] for row in held_out}
    if config.training.eval_shadow.every_steps is None:
        return []
    drawn = _draw(config, [row for row in kept_back if row["source_id"] not in asked], SHADOW_ROWS)
    if len(drawn) < SHADOW_ROWS:
        raise RC1Error(
            f"training.eval_shadow plays {SHADOW_ROWS} rows, but only {len(drawn)} held-out rows have questions that "
            "the evaluation does not ask; lower training.held_out.prompts, or raise training.held_out.share"
        )
    return drawn


def _draw(config: RunConfig, rows: Sequence[MeasuredRow], prompts: int) -> list[MeasuredRow]:
    """Draw `prompts` rows: each bucket's share as far as there are enough, then any other rows.

    Each draw takes tasks in turns, since a claim about a task needs prompts of it. Within a task something is missing
    as often as in the pool, so that means over all prompts, such as turns, are those of its dialogues.
    """
    order = sorted(rows, key=lambda row: hashlib.sha256(f"{HELD_OUT_SEED}/{row['id']}".encode()).digest())
    taken: list[MeasuredRow] = []
    for bucket, share in config.priority_sampling.by_difficulty.items():
        taken += _in_turns([row for row in order if row["bucket"] == bucket])[: round(prompts * share)]
    chosen = {row["id"] for row in taken}
    spare = _in_turns([row for row in order if row["id"] not in chosen])
    taken += spare[: max(0, prompts - len(taken))]
    return sorted(taken, key=lambda row: str(row["id"]))


def _in_turns(rows: Sequence[MeasuredRow]) -> list[MeasuredRow]:
    """Order rows so that each task comes up equally often while its rows last."""
    seen: Counter[str] = Counter()
    turns: list[tuple[int, MeasuredRow]] = []
    for row in rows:
        turns.append((seen[row["task"]], row))
        seen[row["task"]] += 1
    return [row for _, row in sorted(turns, key=lambda turn: turn[0])]


def _report(train: Sequence[MeasuredRow], held_out: Sequence[MeasuredRow], left_out: Counter[str]) -> dict[str, Any]:
    def counted(rows: Sequence[MeasuredRow]) -> dict[str, int]:
        return dict(sorted(Counter(f"{row['task']} {row['bucket']}" for row in rows).items()))

    return {
        "train": len(train),
        "held_out": len(held_out),
        "train_by_bucket": dict(sorted(Counter(row["bucket"] for row in train).items())),
        "train_by_task_and_bucket": counted(train),
        "held_out_by_task_and_bucket": counted(held_out),
        "left_out": dict(sorted(left_out.items())),
    }
