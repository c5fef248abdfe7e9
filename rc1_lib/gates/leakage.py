"""Leakage: no row of the pool repeats a question of the shadow set, whatever template wraps it.

All text of a row is searched (`rc1_lib.text.leak_search`). Unlike the similarity of whole texts, no measure falls when
the leaked question is embedded in a long dialogue; n-grams of template text are left out on both sides. A row may not
contain a shadow row's id or source either. The story of a word problem is part of the question, since "How much did
she earn?" alone identifies nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from rc1_lib.checks import MAX_OFFENDERS, at_most, equal, info, offenders, parts
from rc1_lib.config.thresholds import LeakageGate
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.pool.leaks import search_rows
from rc1_lib.pool.templates import load_pack
from rc1_lib.records import Check, GateResult
from rc1_lib.rows.spoken import places, question_texts
from rc1_lib.text.leak_search import MAX_KEPT, MAX_KEPT_ALIKE, Spelled, common
from rc1_lib.text.normalization import folded, read, words

_ADVICE = (
    "build again (rc1 build-pool --rebuild): the builder leaves out what this measure finds, so the rows listed came "
    "from elsewhere or from an earlier version"
)


def leakage_gate(
    rows: pl.DataFrame,
    shadow: pl.DataFrame,
    thresholds: LeakageGate,
    template_texts: Sequence[str],
    by_task: Sequence[str],
) -> GateResult:
    """Check how much of a shadow question each row contains, and that no source question or id is in both."""
    found, checkable = search_rows(rows, shadow, thresholds, template_texts)
    spelled = _named(found.spelled.with_columns(similarity=pl.lit(1.0)), rows, shadow)
    repeated, retellings = _named(found.repeated, rows, shadow), _named(found.retold, rows, shadow)
    whole = pl.concat([repeated.select(spelled.columns), spelled])
    ids = _named(
        pl.concat([_same_id(rows["id"], shadow["id"]), found.named]).unique().sort("row", "held"), rows, shadow
    )
    same_source = rows.join(shadow.select("source", "source_id").unique(), on=["source", "source_id"], how="semi")
    checks = [
        equal("rows from a shadow question", same_source.height, 0, _ADVICE),
        equal("rows that name a shadow row", ids["row"].n_unique(), 0, _ADVICE),
        equal(
            "shadow questions too short to check", shadow.height - checkable, 0,
            f"fewer than {thresholds.ngram} tokens in a row without template text: lower gates.leakage.ngram",
        ),
        info("rows sharing an n-gram with the shadow set", repeated["row"].n_unique()),
        *_highest("similarity", whole, "similarity", thresholds.max_similarity, by_task),
        *_highest("retold", retellings.filter(~pl.col("alike")), "kept", MAX_KEPT, by_task),
        *_highest("retold alike", retellings.filter("alike", "conclusive"), "kept", MAX_KEPT_ALIKE, by_task),
        info("rows alike, too few such to tell", retellings.filter("alike", ~pl.col("conclusive"))["row"].n_unique()),
    ]  # fmt: skip
    leaks = pl.concat(
        [
            _leaks(repeated.filter(pl.col("similarity") > thresholds.max_similarity), "similarity", "n-grams"),
            _leaks(spelled, "similarity", "letters"),
            _leaks(retellings.filter("leak"), "kept", "words in order"),
            _leaks(ids.with_columns(share=pl.lit(1.0)), "share", "id"),
        ]
    )
    leaks = leaks.unique(["row", "held"], keep="first", maintain_order=True)
    listed = _with_places(leaks, rows, question_texts(shadow))
    listed += offenders(same_source.select("id", "task", "source_id"), "same source question")
    return GateResult("leakage", tuple(checks), offenders=listed)


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


def _same_id(ids: pl.Series, held: pl.Series) -> pl.DataFrame:
    first, second = (pl.DataFrame({"id": folded(column)}) for column in (ids, held))
    return first.with_row_index("row").join(second.with_row_index("held"), on="id").select("row", "held")


def _leaks(pairs: pl.DataFrame, share: str, measure: str) -> pl.DataFrame:
    return pairs.sort(share, descending=True).select(
        "row", "held", "id", "task", "shadow_id", share=share, measure=pl.lit(measure)
    )


def _with_places(leaks: pl.DataFrame, rows: pl.DataFrame, asked: pl.Series) -> tuple[Mapping[str, Any], ...]:
    """Return the leaks as records, each with the place in its row that contains most of the question (or the id)."""
    records = []
    for leak in leaks.head(MAX_OFFENDERS).iter_rows(named=True):
        where, said_there = zip(*places(rows.row(leak["row"], named=True)), strict=True)
        texts = pl.Series(said_there)
        if leak["measure"] == "letters":
            found = Spelled(asked[[leak["held"]]]).found_in(texts, read(texts).letters)["row"]
            # A match that spans two fields has no single place.
            best = int(found[0]) if found.len() else 0
        else:
            sought = leak["shadow_id"] if leak["measure"] == "id" else asked[leak["held"]]
            target, *said = words(pl.Series([sought, *said_there])).to_list()
            best = max(range(len(said)), key=lambda place: common(target, said[place]))
        records.append(
            {
                **{name: leak[name] for name in ("id", "task", "shadow_id", "measure")},
                "similarity": leak["share"], "where": where[best], "reason": "leak",
            }
        )  # fmt: skip
    return tuple(records)


def _judge(evidence: Evidence, _: Round) -> GateResult:
    packs = [load_pack(evidence.path(name)) for name in ("templates", "reference_templates")]
    literals = [text for pack in packs for lang in ("en", "zh") for text in pack.literals(lang)]
    rows, shadow, limits = evidence.rows("pool"), evidence.rows("shadow"), evidence.run.config.gates.leakage
    return leakage_gate(rows, shadow, limits, literals, evidence.tasks)


SPEC = GateSpec("leakage", "is the shadow set unseen", ("pool", "shadow", "templates", "reference_templates"), _judge)
