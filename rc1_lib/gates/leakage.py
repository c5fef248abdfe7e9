"""Leakage: no row of the pool repeats a question of the shadow set, in whatever template it is wrapped.

All text of a row is normalised by `rc1_lib.text.normalization` and searched by two measures. Containment is the share
of a shadow question's word n-grams that occur anywhere in the row. Unlike a similarity of whole texts it does not fall
when the leaked question is embedded in a long dialogue; n-grams of template text are left out on both sides. Retelling
(`rc1_lib.text.fuzzy_containment`) is how much of the question occurs in one place and in order, which edits hardly
lower. A row may not contain a shadow row's id or source either. The story of a word problem is part of the question:
"How much did she earn?" alone says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from rc1_lib.checks import MAX_OFFENDERS, at_least, at_most, equal, info, offenders, parts
from rc1_lib.config.thresholds import LeakageGate
from rc1_lib.records import Check, GateResult
from rc1_lib.rows.spoken import places, spoken
from rc1_lib.runtime.batches import slices
from rc1_lib.task_specs import task_names, task_spec
from rc1_lib.text.fuzzy_containment import common, retold
from rc1_lib.text.ngrams import ngrams_of
from rc1_lib.text.normalization import folded, hashed, words, words_of_many
from rc1_lib.text.search import Search, Spelled
from rc1_lib.text.tokenized_texts import ReadTexts

_ADVICE = "drop the rows listed, or rebuild: the builder leaves shadow questions out, so the leak came from elsewhere"
_ID_WORDS = 3
"""Ids of fewer words are not searched for in texts: they could be anything."""


def leakage_gate(
    rows: pl.DataFrame,
    shadow: pl.DataFrame,
    thresholds: LeakageGate,
    template_texts: Sequence[str],
    by_task: Sequence[str],
) -> GateResult:
    """Check how much of any shadow question any row contains, and that no source question or id is in both."""
    asked = folded(question_texts(shadow))
    held = words(asked)
    wanted = ngrams_of(held, thresholds.ngram).join(
        ngrams_of(words(folded(pl.Series(list(template_texts), dtype=pl.String))), thresholds.ngram),
        on="gram",
        how="anti",
    )
    search, spelled_ids = Search(asked, wanted, thresholds.ngram), _spelled_ids(shadow)
    said_ids = [_ids_in(search.read(spoken(rows[part])), part.start, spelled_ids) for part in slices(rows.height)]
    ids = pl.concat([_same_id(rows["id"], shadow["id"]), *said_ids]).unique().sort("row", "held")
    own = words_of_many(question_texts(rows))
    spelled = _named(search.spelled.with_columns(similarity=pl.lit(1.0)), rows, shadow)
    repeated = _named(search.repeated, rows, shadow)
    whole = pl.concat([repeated.select(spelled.columns), spelled])
    retellings = _named(retold(search.texts, own, held, thresholds), rows, shadow)
    ids = _named(ids, rows, shadow)
    same_source = rows.join(shadow.select("source", "source_id").unique(), on=["source", "source_id"], how="semi")
    checkable = wanted["row"].n_unique()
    checks = [
        equal("rows from a shadow question", same_source.height, 0, _ADVICE),
        equal("rows that name a shadow row", ids["row"].n_unique(), 0, _ADVICE),
        equal(
            "shadow questions too short to check", shadow.height - checkable, 0,
            f"fewer than {thresholds.ngram} tokens in a row without template text: lower gates.leakage.ngram",
        ),
        at_least("rows compared", rows.height, 1, "there are no rows to check"),
        at_least("shadow questions compared", checkable, 1, "there are no shadow questions to check against"),
        info("rows sharing an n-gram with the shadow set", repeated["row"].n_unique()),
        *_highest("similarity", whole, "similarity", thresholds.max_similarity, by_task),
        *_highest("retold", retellings.filter(~pl.col("alike")), "kept", thresholds.max_kept, by_task),
        *_highest("retold alike", retellings.filter("alike", "told"), "kept", thresholds.max_kept_alike, by_task),
        info("rows alike, too few such to tell", retellings.filter("alike", ~pl.col("told"))["row"].n_unique()),
    ]  # fmt: skip
    leaks = pl.concat(
        [
            _leaks(repeated.filter(pl.col("similarity") > thresholds.max_similarity), "similarity", "n-grams"),
            _leaks(spelled, "similarity", "letters"),
            _leaks(retellings.filter("leak"), "kept", "words in order"),
            _leaks(ids.with_columns(share=pl.lit(1.0)), "share", "id"),
        ]
    )
    listed = _with_places(leaks.unique(["row", "held"], keep="first", maintain_order=True), rows, held, asked)
    listed += offenders(same_source.select("id", "task", "source_id"), "same source question")
    return GateResult("leakage", tuple(checks), offenders=listed)


def question_texts(rows: pl.DataFrame) -> pl.Series:
    """What each row asks: its question, and for a word problem the story before it."""
    story = pl.col("support").list.join("\n") + "\n"
    is_story = pl.col("task").is_in([task for task in task_names() if task_spec(task).word_problem])
    return rows.select(pl.concat_str(pl.when(is_story).then(story).otherwise(pl.lit("")), "question")).to_series()


def _named(pairs: pl.DataFrame, rows: pl.DataFrame, shadow: pl.DataFrame) -> pl.DataFrame:
    return pairs.with_columns(
        id=rows["id"].gather(pairs["row"]),
        task=rows["task"].gather(pairs["row"]),
        shadow_id=shadow["id"].gather(pairs["held"]),
    )


def _highest(name: str, pairs: pl.DataFrame, column: str, most: float, by_task: Sequence[str]) -> list[Check]:
    checks = []
    for suffix, part in parts(pairs, by_task):
        highest = part[column].max()
        value = float(highest) if isinstance(highest, float) else 0.0
        checks.append(at_most(f"highest {name}{suffix}", value, most, _ADVICE))
    return checks


def _spelled_ids(shadow: pl.DataFrame) -> list[tuple[int, list[int]]]:
    """The words of every id, of a shadow row or of its source, that is long enough to search for."""
    spelled = pl.concat(
        [words(folded(shadow[column])).with_columns(column=pl.lit(column)) for column in ("id", "source_id")]
    )
    whole = spelled.group_by("row", "column").agg("word").filter(pl.col("word").list.len() >= _ID_WORDS)
    return list(whole.select("row", "word").iter_rows())


def _ids_in(texts: ReadTexts, first: int, ids: Sequence[tuple[int, list[int]]]) -> pl.DataFrame:
    """Rows, counted from `first`, that contain one of `ids`: columns `row`, `held`."""
    codes, text_ends = texts.texts.codes, texts.texts.ends
    word_of = hashed(texts.words)["word"]
    said = word_of.to_numpy()
    # The last word distinguishes ids, so it is the rarest.
    last = pl.Series([spelled[-1] for _, spelled in ids], dtype=pl.UInt64).unique()
    ends = np.flatnonzero(word_of.is_in(last.implode()).to_numpy()[codes])
    end_words, begins = said[codes[ends]], np.searchsorted(text_ends, ends, side="right")
    begins = texts.texts.starts[begins]
    found: list[tuple[int, int]] = []
    for held, spelled in ids:
        this = end_words == spelled[-1]
        starts = ends[this] - (len(spelled) - 1)
        starts = starts[starts >= begins[this]]
        for place, word in enumerate(spelled):
            starts = starts[said[codes[starts + place]] == word]
        rows = np.unique(np.searchsorted(text_ends, starts, side="right"))
        found += [(first + int(row), held) for row in rows]
    return pl.DataFrame(found, schema={"row": pl.UInt32, "held": pl.UInt32}, orient="row")


def _same_id(ids: pl.Series, held: pl.Series) -> pl.DataFrame:
    first, second = (pl.DataFrame({"id": folded(column)}) for column in (ids, held))
    return first.with_row_index("row").join(second.with_row_index("held"), on="id").select("row", "held")


def _leaks(pairs: pl.DataFrame, share: str, measure: str) -> pl.DataFrame:
    return pairs.sort(share, descending=True).select(
        "row", "held", "id", "task", "shadow_id", share=share, measure=pl.lit(measure)
    )


def _with_places(
    leaks: pl.DataFrame, rows: pl.DataFrame, held: pl.DataFrame, asked: pl.Series
) -> tuple[Mapping[str, Any], ...]:
    """The leaks as records, each with the place in its row that holds most of the question (or the id)."""
    sought = {number[0]: part["word"].to_list() for number, part in held.group_by("row")}
    records = []
    for leak in leaks.head(MAX_OFFENDERS).iter_rows(named=True):
        where, said_there = zip(*places(rows.row(leak["row"], named=True)), strict=True)
        texts = folded(pl.Series(said_there))
        if leak["measure"] == "letters":
            found = Spelled(asked[[leak["held"]]]).found_in(texts)["row"]
            # A match that runs from one field into the next does not count as one place.
            best = int(found[0]) if found.len() else 0
        else:
            said = words(texts).partition_by("row", as_dict=True)
            target = sought[leak["held"]]
            if leak["measure"] == "id":
                target = words(folded(pl.Series([leak["shadow_id"]])))["word"].to_list()
            held_by = {int(str(place[0])): common(target, part["word"].to_list()) for place, part in said.items()}
            best = max(held_by, key=lambda place: held_by[place])
        records.append(
            {
                **{name: leak[name] for name in ("id", "task", "shadow_id", "measure")},
                "similarity": leak["share"], "where": where[best], "reason": "leak",
            }
        )  # fmt: skip
    return tuple(records)
