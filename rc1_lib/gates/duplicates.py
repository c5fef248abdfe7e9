"""Duplicates: exact and near duplicates together make up at most a few per cent of the rows.

Near duplicates are found by MinHash with banding (Broder, "On the resemblance and containment of documents", 1997;
Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", ch. 3) and then *verified*: the exact Jaccard similarity
of the two rows' shingle sets is compared with the threshold, so that the verdict has no sketching noise.

Whether rows that differ only in numbers are copies depends on the data; their similarity depends on the length of their
template. So `gates.duplicates.numbers` decides, and their count is reported either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rensa import RMinHash

from rc1_lib.checks import at_most, info, number, offenders, parts
from rc1_lib.config.thresholds import DuplicatesGate
from rc1_lib.gates.spec import GateSpec
from rc1_lib.records import GateResult
from rc1_lib.rows.frame import texts_of
from rc1_lib.runtime.batches import in_parts
from rc1_lib.text.ngrams import in_chunks, ngrams
from rc1_lib.text.normalization import CodedTexts, undisguised

SIMILARITY = 0.8
"""Jaccard similarity from which two rows are near duplicates: about one word in 27 may differ."""
SHINGLE = 3
"""Words per shingle: pairs of words recur in different rows, and of longer ones a changed word removes more."""
_CHANGED = round(100 * (1 - SIMILARITY) / ((1 + SIMILARITY) * SHINGLE), 1)
"""Per cent of evenly spread words whose change leaves two long texts as similar as the threshold. A changed word takes
`SHINGLE` of its text's shingles away, and adds as many to the union."""
PERMUTATIONS = 128
"""Minima that find candidates, each of which is then compared exactly."""
_BANDS = 32
"""Bands of four minima: half of the rows of similarity 0.38 agree in one, and practically all of those of 0.8."""
_SEED = 42
_MIXER = np.uint64(0x9E3779B97F4A7C15)
_ADVICE = (
    "drop the rows listed; if they are near duplicates, paraphrase more (more templates, sources.max_uses: 1) "
    "or add questions"
)


def duplicates_gate(rows: pl.DataFrame, thresholds: DuplicatesGate, by_task: Sequence[str]) -> GateResult:
    """Check the share of rows that repeat an earlier row's dialogue (user, assistant and tool text)."""
    dialogues = undisguised(texts_of(rows, "dialogue"))
    exact, numbered = exact_duplicates(dialogues), exact_duplicates(without_numbers(dialogues))
    in_numbers = numbered.height - exact.height
    if thresholds.numbers == "alike":
        dialogues, exact = without_numbers(dialogues), numbered
    near = near_duplicates(dialogues, thresholds.numbers).filter(~pl.col("row").is_in(exact["row"].implode()))
    repeated = pl.concat([exact.with_columns(similarity=pl.lit(1.0)), near])
    table = rows.select("id", "task").with_row_index("row").join(repeated, on="row", how="left")
    checks = []
    for suffix, part in parts(table, by_task):
        share = 100.0 * number(part["earlier"].is_not_null().mean())
        checks.append(at_most(f"duplicate rows, %{suffix}", share, thresholds.max_dup_pct, _ADVICE))
    checks.append(info("exact duplicates", exact.height))
    checks.append(info("near duplicates", near.height))
    checks.append(info("words changed in a near duplicate, %, at most about", _CHANGED))
    checks.append(info("rows that repeat an earlier one but for numbers", in_numbers))
    checks.append(info("rows on a question used before", rows.height - rows.select("source", "source_id").n_unique()))
    bad = table.filter(pl.col("earlier").is_not_null())
    bad = bad.with_columns(duplicate_of=rows["id"].gather(bad["earlier"]))
    return GateResult(
        "duplicates",
        tuple(checks),
        offenders=offenders(bad.select("id", "task", "duplicate_of", "similarity"), "duplicate"),
    )


def without_numbers(texts: pl.Series) -> pl.Series:
    """Return the texts with every number replaced by 0."""
    return texts.str.replace_all(r"\d+(?:[.,]\d+)*", "0")


def exact_duplicates(texts: pl.Series) -> pl.DataFrame:
    """Return the rows whose text equals an earlier row's, ignoring case and spacing: columns `row`, `earlier`."""
    hashes = in_parts(texts.to_frame("text"), lambda part: part.select(_plain("text").hash()))
    # Few hashes occur twice; the texts decide whether these rows really are duplicates.
    rows = hashes.to_series().is_duplicated().arg_true()
    return (
        pl.DataFrame({"row": rows, "text": texts.gather(rows)})
        .with_columns(_plain("text"))
        .with_columns(earlier=pl.col("row").first().over("text"))
        .filter(pl.col("row") != pl.col("earlier"))
        .select("row", "earlier")
    )


def _plain(column: str) -> pl.Expr:
    return pl.col(column).str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def near_duplicates(texts: pl.Series, numbers: Literal["differ", "alike"]) -> pl.DataFrame:
    """Return rows at least as similar to an earlier one as the threshold: columns `row`, `earlier`, `similarity`."""
    signatures, rows = _minhash(texts)
    pairs = _candidates(signatures, rows)
    compared = pl.concat([pairs["row"], pairs["earlier"]]).unique().sort()
    shingles = _shingles(texts.gather(compared))
    found = in_parts(pairs, lambda part: _similarities(part, compared.to_numpy(), shingles))
    found = found.filter(pl.col("similarity") >= SIMILARITY)
    if numbers == "differ":
        found = found.filter(~_differ_in_numbers(texts.gather(found["row"]), texts.gather(found["earlier"])))
    return found.sort("row", "similarity", "earlier", descending=[False, True, False]).unique(
        "row", keep="first", maintain_order=True
    )


def _differ_in_numbers(texts: pl.Series, others: pl.Series) -> pl.Series:
    """Return, for each pair of texts, whether only numbers differ."""
    sides = pl.DataFrame({"one": texts, "other": others})
    bare = pl.DataFrame({"one": without_numbers(texts), "other": without_numbers(others)})
    same, same_bare = (part.select(_plain("one") == _plain("other")).to_series() for part in (sides, bare))
    return same_bare & ~same


def _similarities(pairs: pl.DataFrame, compared: NDArray[np.uint32], shingles: CodedTexts) -> pl.DataFrame:
    """Return the exact Jaccard similarity of pairs that share a shingle; `shingles` has one text per row `compared`."""
    sides = [shingles.take(np.searchsorted(compared, pairs[side].to_numpy())) for side in ("row", "earlier")]
    left, right = (
        pl.DataFrame({"pair": np.repeat(np.arange(pairs.height), side.lengths), "shingle": side.codes})
        for side in sides
    )
    shared = left.join(right, on=["pair", "shingle"]).group_by("pair").len("shared")
    both = pairs.with_columns(pair=np.arange(pairs.height), sizes=sum(side.lengths for side in sides))
    share = pl.col("shared") / (pl.col("sizes") - pl.col("shared"))
    return both.join(shared, on="pair").select("row", "earlier", similarity=share)


def _minhash(texts: pl.Series) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return MinHash signatures, shape (texts with shingles, PERMUTATIONS), and those texts' positions."""
    # A repeated shingle does not change a minimum, so repetitions need not be removed.
    signatures, rows = [np.empty((0, PERMUTATIONS), np.uint32)], [np.empty(0, np.uint32)]
    for shingles in in_chunks(texts, SHINGLE, lambda grams: grams):
        counts = shingles.group_by("row", maintain_order=True).len("count")
        ends = counts["count"].cum_sum().cast(pl.UInt64).to_numpy()
        offsets = np.concatenate([np.zeros(1, np.uint64), ends])
        hashes = shingles["gram"].to_numpy()
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, PERMUTATIONS, _SEED)
        if counts.height:
            signatures.append(np.asarray(matrix.to_rows(), dtype=np.uint32))
            rows.append(counts["row"].to_numpy())
    return np.concatenate(signatures), np.concatenate(rows)


def _shingles(texts: pl.Series) -> CodedTexts:
    """Return the distinct shingles of each text, as `ngrams` returns them."""
    found = ngrams(texts, SHINGLE)
    ends = found["row"].search_sorted(pl.int_range(len(texts), dtype=pl.UInt32, eager=True), side="right")
    return CodedTexts(found["gram"].to_numpy(), ends.cast(pl.Int64).to_numpy())


def _candidates(signatures: NDArray[np.uint32], rows: NDArray[np.uint32]) -> pl.DataFrame:
    """Return pairs that agree in at least one band: each row with the first and the previous row of its group.

    The previous row keeps chains of near duplicates.
    """
    found = [np.empty((2, 0), np.uint32)]
    for band in np.split(signatures, _BANDS, axis=1):
        keys = np.zeros(len(band), np.uint64)
        for column in band.T:
            keys = (keys ^ column) * _MIXER
        order = np.argsort(keys, kind="stable")
        again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]]) + 1
        opens = np.arange(len(order))
        opens[again] = 0
        first = np.maximum.accumulate(opens)[again]
        found += [rows[np.stack([order[again], order[earlier]])] for earlier in (first, again - 1)]
    pairs = np.concatenate(found, axis=1)
    return pl.DataFrame({"row": pairs[0], "earlier": pairs[1]}).unique()


SPEC = GateSpec(
    "duplicates", "are the rows different", ("pool",),
    lambda e, _: duplicates_gate(e.rows("pool"), e.run.config.gates.duplicates, e.tasks),
)  # fmt: skip
