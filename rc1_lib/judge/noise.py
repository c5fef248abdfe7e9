"""The judge's noise: how far the K scores of one dialogue lie apart, pooled over dialogues, with an interval.

Scores are held in long form: one row a score, columns `dialogue`, `sample`, `dimension`, `score`. A sample that was not
scored has no row (or a null), so that dialogues with unequal numbers of samples need no special case.
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
        dimension: what was scored, or `OVERALL`.
        dialogues: dialogues with at least two scores; the others say nothing about noise.
        df: degrees of freedom of the interval: the sum of K_i - 1 over those dialogues.
        variance: pooled unbiased variance; NaN when `df` is 0.
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
    """The scores of log lines in long form; columns of `SCORE_SCHEMA`.

    Args:
        lines: columns `dialogue`, `sample` and `scores`: one flat JSON object of numbers a line, or null.

    Returns:
        One row a score. A text that is not such an object gives one row with a null dimension and a NaN score, so that
        whoever looks for bad scores finds it and nobody takes it for a score.
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
    """The noise of each dimension, and overall.

    The pooled variance is sum((K_i - 1) s_i^2) / sum(K_i - 1) over dialogues i. Where the noise is normal with the same
    variance in every dialogue, df * s^2 / sigma^2 follows chi-square with df degrees of freedom, which gives the
    interval [s * sqrt(df / q_hi), s * sqrt(df / q_lo)] of the standard deviation, q the quantiles at
    (1 +- confidence) / 2 (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.8; Snedecor and Cochran, "Statistical
    Methods", ch. 5). Noise that is clipped at 0 or 1, or heavy-tailed, is not normal: the interval is then approximate.

    Args:
        scores: columns `dialogue`, `dimension`, `score`.
        confidence: of the intervals, between 0 and 1.

    Returns:
        One entry a dimension, in order of first appearance, then `OVERALL`: the variances' mean, weighted by df. The
        dimensions of one reply are drawn together, so the seven of them are not seven observations: its interval has
        the fewest df of any dimension with noise to measure, which is exact where dimensions move as one, and wider
        than it need be where they do not. Without any scores, `OVERALL` alone.
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
    from scipy.special import gammaincinv  # scipy.stats, whose chi2.ppf says this, takes a second to import

    variance = squares / df
    sd = math.sqrt(variance)
    low, high = (
        sd * math.sqrt(independent / (2 * float(gammaincinv(independent / 2, tail))))
        for tail in ((1 + confidence) / 2, (1 - confidence) / 2)
    )
    return Noise(dimension, dialogues, independent, variance, sd, low, high)
