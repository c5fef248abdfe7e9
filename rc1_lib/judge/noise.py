"""The judge's noise: the spread of the K scores of one dialogue, pooled over dialogues, with an interval.

Scores are in long form: one row per score, columns `dialogue`, `sample`, `dimension`, `score`. A sample without a score
has no row (or a null), so dialogues with unequal numbers of samples need no special case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from rc1_lib.judge.results import SCORE_SCHEMA, medians_and_variances

OVERALL = "overall"
"""The name under which `pooled` reports all dimensions together."""
_NAME = r'"((?:[^"\\]|\\.)*)"'
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Infinity)|NaN"
_PAIR = rf"{_NAME}\s*:\s*({_NUMBER})"
_OBJECT = rf"^\s*\{{\s*{_PAIR}\s*(?:,\s*{_PAIR}\s*)*\}}\s*$"


@dataclass(frozen=True, slots=True)
class Noise:
    """The scatter between samples of the same dialogue.

    Attributes:
        dimension: its name, or `OVERALL`.
        dialogues: number of dialogues with at least two scores; others carry no information about noise.
        df: degrees of freedom of the interval: the sum of K_i - 1 over those dialogues.
        variance: pooled unbiased variance; NaN if `df` is 0.
        sd: its square root, in units of the score.
        low: lower end of the interval of the sd.
        high: upper end.
    """

    dimension: str
    dialogues: int
    df: int
    variance: float
    sd: float
    low: float
    high: float


def long_scores(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of log lines in long form, with the columns of `SCORE_SCHEMA`.

    Args:
        lines: columns `dialogue`, `sample` and `scores`: one flat JSON object of numbers per line, or null.

    Returns:
        One row per score. A text that is not such an object gives one row with a null dimension and a NaN score: a
        check for bad scores finds it, and nothing mistakes it for a score.
    """
    texts = lines.filter(pl.col("scores").is_not_null()).select("dialogue", "sample", "scores")
    good = pl.col("scores").str.contains(_OBJECT)
    pairs = (
        texts.filter(good)
        .with_columns(pair=pl.col("scores").str.extract_all(_PAIR))
        .explode("pair")
        .select(
            "dialogue",
            "sample",
            dimension=pl.col("pair").str.extract(_PAIR, 1),
            score=pl.col("pair").str.extract(_PAIR, 2).str.replace("Infinity", "inf").cast(pl.Float64),
        )
    )
    broken = texts.filter(~good).select(
        "dialogue", "sample", dimension=pl.lit(None, pl.String), score=pl.lit(math.nan, pl.Float64)
    )
    return pl.concat([pairs, broken]).cast(SCORE_SCHEMA)  # type: ignore[arg-type]


def pooled(scores: pl.DataFrame, confidence: float) -> list[Noise]:
    """Compute the noise of each dimension and overall.

    The pooled variance is sum((K_i - 1) s_i^2) / sum(K_i - 1) over dialogues i. If the noise is normal with the same
    variance in every dialogue, df * s^2 / sigma^2 is chi-square distributed with df degrees of freedom. This gives the
    interval [s * sqrt(df / q_hi), s * sqrt(df / q_lo)] of the standard deviation, with q the quantiles at
    (1 +- confidence) / 2 (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.8; Snedecor and Cochran, "Statistical
    Methods", ch. 5). Noise that is clipped at 0 or 1, or heavy-tailed, is not normal; the interval is then approximate.

    Args:
        scores: columns `dialogue`, `dimension`, `score`.
        confidence: of the intervals, between 0 and 1.

    Returns:
        One entry per dimension, in order of first appearance, then `OVERALL`: the mean of the variances, weighted by
        df. The dimensions of one reply are drawn together, so they are not independent observations. The overall
        interval therefore uses the smallest df of any dimension with repeated scores: exact if the dimensions move
        together, otherwise wider than necessary. Without scores, `OVERALL` alone.
    """
    spread = medians_and_variances(scores).filter(pl.col("dimension").is_not_null())
    squares = pl.col("variance") * (pl.col("samples") - 1)
    repeated = pl.col("samples") >= 2
    sums = spread.group_by("dimension", maintain_order=True).agg(
        dialogues=repeated.sum().cast(pl.Int64),
        df=(pl.col("samples") - 1).sum(),
        squares=squares.filter(repeated).sum(),
    )
    noises = [
        _noise(dimension, dialogues, df, squares, df, confidence)
        for dimension, dialogues, df, squares in sums.iter_rows()
    ]
    measured = sums.filter(pl.col("df") > 0)
    dialogues = spread.filter(repeated)["dialogue"].n_unique()
    total, fewest = sum(measured["df"]), min(measured["df"], default=0)
    return [*noises, _noise(OVERALL, dialogues, total, sum(measured["squares"]), fewest, confidence)]


def _noise(dimension: str, dialogues: int, df: int, squares: float, independent: int, confidence: float) -> Noise:
    if not df:
        return Noise(dimension, dialogues, 0, math.nan, math.nan, math.nan, math.nan)
    from scipy.special import gammaincinv  # equals chi2.ppf of scipy.stats, which takes a second to import

    variance = squares / df
    sd = math.sqrt(variance)
    low, high = (
        sd * math.sqrt(independent / (2 * float(gammaincinv(independent / 2, tail))))
        for tail in ((1 + confidence) / 2, (1 - confidence) / 2)
    )
    return Noise(dimension, dialogues, independent, variance, sd, low, high)
