"""Build the shadow set and the pool: plan, decontaminate, pose every question in several ways, choose, report."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from types import TracebackType
from typing import Any, NamedTuple

import polars as pl

from rc1_lib.config.data import Pool
from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.thresholds import LeakageGate
from rc1_lib.pool.distractors import lend_pages
from rc1_lib.pool.leaks import search_rows
from rc1_lib.pool.plan import PlannedRow, held_text, plan_pool, plan_shadow, split_shadow
from rc1_lib.pool.teacher import fits
from rc1_lib.pool.templates import Pack
from rc1_lib.pool.variants import Variant, choose, pose_variants
from rc1_lib.records import Question, Task
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.rows.playable import is_playable
from rc1_lib.runtime.batches import slices
from rc1_lib.text.leak_search import LeakSearch

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class BuildReport:
    """Counts for the manifest."""

    rows: Counter[str] = field(default_factory=Counter)
    recipes: Counter[str] = field(default_factory=Counter)
    buckets: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    second_uses: int = 0
    too_short_or_long: int = 0
    unplayable: int = 0
    measured: pl.DataFrame | None = None
    """The rows' metrics in order, set before the first row is written; not part of the manifest."""

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON-ready values, under the manifest's keys."""
        return {
            "rows": dict(sorted(self.rows.items())),
            "posed_by_recipe": dict(sorted(self.recipes.items())),
            "measured_buckets": dict(sorted(self.buckets.items())),
            "dropped_questions": {reason: count for reason, count in sorted(self.dropped.items()) if count},
            "questions_that_withhold_nothing": dict(sorted(self.kept.items())),
            "second_uses_of_a_question": self.second_uses,
            "rows_left_outside_the_length_bounds": self.too_short_or_long,
            "rows_without_user_replies": self.unplayable,
        }


@dataclass(frozen=True, slots=True)
class Plans:
    """The rows of the shadow set and of the pool, which share no question."""

    shadow: list[PlannedRow]
    pool: list[PlannedRow]
    report: BuildReport


def plan(
    config: RunConfig,
    questions: Mapping[Task, Sequence[Question]],
    *,
    pool: bool = True,
    held_elsewhere: Sequence[Question] = (),
    leaking: Collection[str] = (),
) -> Plans:
    """Decide every row of the shadow set and of the pool.

    Args:
        config: the run's configuration.
        questions: the source's questions by task.
        pool: if False, plan only the shadow set, which is the same either way.
        held_elsewhere: questions held out by another run, which the pool must leave out too.
        leaking: ids of questions whose rows contain a shadow question; the pool leaves them out.

    Raises:
        SourceError: when there are too few questions.
    """
    report = BuildReport()
    posable = usable(questions, config.pool, report)
    drawn, free = split_shadow(config, posable)
    held = lend_pages(drawn, posable, config.pool.seed)
    if not pool:
        return Plans(plan_shadow(held), [], report)
    # Dropped by id as well: the text of a held question may lack the words that its row withholds.
    others = {question.id for question in held_elsewhere}
    own = [question for question in free if question.id not in others]
    own = lend_pages(own, posable, config.pool.seed, withheld=[*held, *held_elsewhere])
    clean, repeating = decontaminate(own, [*held, *held_elsewhere], config.gates.leakage)
    report.dropped["repeats a shadow question"] += repeating + len(free) - len(own) + len(leaking)
    rows = plan_pool(config, [question for question in clean if question.id not in leaking])
    report.second_uses = sum(row.use > 0 for row in rows)
    return Plans(plan_shadow(held), rows, report)


def usable(questions: Mapping[Task, Sequence[Question]], pool: Pool, report: BuildReport) -> dict[Task, list[Question]]:
    """Return the questions whose solution fits into the turn limit; the others are counted in `report`.

    It also counts, by reason, the questions of which nothing can be withheld: they are posed complete.
    """
    kept: dict[Task, list[Question]] = {}
    for task, candidates in questions.items():
        kept[task] = [question for question in candidates if fits(question, pool)]
        report.dropped[f"{task}: solution longer than max_turns"] += len(candidates) - len(kept[task])
        report.kept.update(f"{task}: {question.kept}" for question in kept[task] if question.kept)
    return kept


def decontaminate(
    questions: Sequence[Question], held: Sequence[Question], limits: LeakageGate
) -> tuple[list[Question], int]:
    """Drop every question that repeats or paraphrases a held-out one, as the gate `leakage` measures it.

    Pages count too: some are borrowed from other questions, and a page may say just what a held-out question asks.

    Returns:
        The questions that remain, and how many were dropped.
    """
    asked, own = (_column(map(held_text, side)) for side in (held, questions))
    search = LeakSearch(asked, own, limits, anywhere=True)
    found = search.over(_column(map(_stated_by, questions[part])) for part in slices(len(questions)))
    leaking = found.rows(limits)  # dropping one question too many costs nothing here
    return [question for index, question in enumerate(questions) if index not in leaking], len(leaking)


def _stated_by(question: Question) -> str:
    # The pages of an embedded question describe invented people and places that no other question asks about.
    pages = () if question.source == "embedded" else question.passages
    return "\n".join((question.ask, *question.support, *(text for page in pages for text in (page.title, page.text))))


def _column(texts: Iterable[str]) -> pl.Series:
    return pl.Series(list(texts), dtype=pl.String)


def write_rows(
    planned: Sequence[PlannedRow],
    config: RunConfig,
    pack: Pack,
    report: BuildReport,
    progress: Progress | None = None,
) -> Iterator[bytes]:
    """Yield the rows as JSON lines in the plan's order; `pool.workers` does not change a byte."""

    def measured(metrics: pl.DataFrame) -> None:
        report.measured = metrics

    for row, (taken, line) in zip(planned, chosen_variants(planned, config, pack, progress, measured), strict=True):
        report.rows[row.question.task] += 1
        report.recipes[f"{row.question.task}: {taken.recipe}"] += 1
        report.buckets[f"{row.question.task}: {taken.bucket}"] += 1
        report.too_short_or_long += not taken.right_length
        report.unplayable += row.question.dialogue is not None and not is_playable(row.question.dialogue)
        yield line


def leaking_questions(
    lines: Iterable[bytes], shadow: Iterable[bytes], planned: Sequence[PlannedRow], limits: LeakageGate, pack: Pack
) -> set[str]:
    """Return the ids of questions whose rows contain a shadow question, as the gate `leakage` measures it.

    Only the rows tell: a shadow row says less than its question if it withholds something, and the words that weigh
    are those that are rare among the pool's own questions.

    Args:
        lines: the pool's rows, as planned.
        shadow: the shadow set's rows.
        planned: the plan of the pool.
        pack: the templates, whose words do not count.
    """
    rows, held = (pl.read_ndjson(b"".join(part), schema=pl.Schema(ROW_COLUMNS)) for part in (lines, shadow))
    found, _ = search_rows(rows, held, limits, [text for lang in ("en", "zh") for text in pack.literals(lang)])
    return {planned[row].question.id for row in found.rows(limits)}


def chosen_variants(
    planned: Sequence[PlannedRow],
    config: RunConfig,
    pack: Pack,
    progress: Progress | None = None,
    measured: Callable[[pl.DataFrame], None] | None = None,
) -> Iterator[tuple[Variant, bytes]]:
    """Yield the chosen variant of each planned row with its JSON line, in the plan's order.

    Every question is posed with each recipe and measured. For each task, the pool then takes the variants that come
    closest to `pool.intended`. Variants outside the length bounds are used only if a question has no other.

    Args:
        progress: called with (rows posed, rows planned).
        measured: called once with the metrics of all chosen rows, before the first row is yielded.
    """
    variants: list[list[Variant]] = []
    metrics: list[pl.DataFrame] = []
    with TemporaryLines() as stored:
        places: list[list[Place]] = []
        for posed in pose_variants(planned, config, pack):
            metrics.append(posed.measured)
            for row in posed.rows:
                variants.append([variant for variant, _ in row])
                places.append([stored.put(line) for _, line in row])
            if progress is not None:
                progress(len(variants), len(planned))
        picks = choose([row.question.task for row in planned], variants, config.pool.intended)
        if measured is not None:
            starts = accumulate((len(of_row) for of_row in variants[:-1]), initial=0)
            measured(pl.concat(metrics)[[start + pick for start, pick in zip(starts, picks, strict=True)]])
        for of_row, lines, pick in zip(variants, places, picks, strict=True):
            yield of_row[pick], stored.take(lines[pick])


# Keep lines on disk until it is known which of them are needed.


class Place(NamedTuple):
    """Position of a stored line, in bytes."""

    start: int
    size: int


class TemporaryLines:
    """An anonymous file, removed at the end of the block or of the process."""

    def __enter__(self) -> TemporaryLines:
        self._file = tempfile.TemporaryFile()
        self._end = 0
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def put(self, line: bytes) -> Place:
        """Append a line. Store all lines before you read the first."""
        self._file.write(line)
        place = Place(self._end, len(line))
        self._end += len(line)
        return place

    def take(self, place: Place) -> bytes:
        """Read the line at `place`."""
        self._file.seek(place.start)
        return self._file.read(place.size)
