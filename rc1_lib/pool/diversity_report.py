"""The diversity report: every measure of a set of texts, and what its template pack covers.

The texts come from a pack (`pack_texts`) or from pool rows; the figures have the same names for both.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.pool.derived import REFERENCE_TEMPLATES, TEMPLATES
from rc1_lib.pool.diversity import (
    KL_ALPHA,
    WINDOW_BIGRAMS,
    distinct_n,
    kl_divergence,
    windowed_distinct,
    zipf_slope,
)
from rc1_lib.pool.templates import Pack, load_pack, pieces
from rc1_lib.run import Run
from rc1_lib.text.tokens import tokenize, tokens
from rc1_lib.workspace.artifacts import write_json

DIVERSITY = "reports/diversity_report.json"


def write_pack_report(run: Run) -> None:
    """Write `pack_report` to `DIVERSITY`. Packs that cannot be compared get no report; the gate says why."""
    path = run.workspace.path(DIVERSITY)
    try:
        write_json(path, pack_report(run))
    except RC1Error:
        path.unlink(missing_ok=True)


def pack_report(run: Run) -> dict[str, Any]:
    """Measure the run's template pack against the reference pack.

    Raises:
        TemplateError: when a pack cannot be read.
        RowError: when a pack has too little text to measure.
    """
    pack, reference = (load_pack(given.path(run)) for given in (TEMPLATES, REFERENCE_TEMPLATES))
    measured = diversity_report(pack_texts(pack), pack, pack_texts(reference), seed=run.config.pool.seed)
    return {"measured": run.workspace.name(TEMPLATES.path(run)), **measured}


def pack_texts(pack: Pack, lang: str | None = None) -> pl.Series:
    """Return all template text of a pack, or of one of its languages, in the order of ids.

    Phrases are cut into separate texts at their slots, so that no n-gram spans a gap.
    """
    chosen = (t for (_, language), group in sorted(pack.groups.items()) if lang in (None, language) for t in group)
    texts = [literal.strip() for t in chosen for phrase in t.phrases() for literal, _ in pieces(phrase)]
    return pl.Series("text", [text for text in texts if tokenize(text)], dtype=pl.String)


def diversity_report(
    texts: pl.Series,
    pack: Pack,
    reference_texts: pl.Series,
    *,
    window_bigrams: int = WINDOW_BIGRAMS,
    alpha: float = KL_ALPHA,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure `texts` and list what `pack` covers.

    Args:
        pack: the template pack they were made with.
        reference_texts: what divergences are measured against: the reference pack's text, or rows made with it. Give
            equally many rows about the same questions; see `kl_divergence`.
        window_bigrams: n-grams in a window of the windowed values.
        alpha: additive smoothing of the KL divergence.
        seed: order of the rows in the windowed values.

    Returns:
        JSON-ready figures; divergences in nats.

    Raises:
        RowError: when the texts are too short to measure.
    """
    return {
        "texts": len(texts),
        "reference_texts": len(reference_texts),
        "words": int(pl.DataFrame({"text": texts}).select(tokens("text").list.len().sum()).item()),
        "distinct_1": _distinct(texts, 1, window_bigrams, seed),
        "distinct_2": _distinct(texts, 2, window_bigrams, seed),
        "type_token_ratio": distinct_n(texts, 1),  # distinct-1 under its older name
        "zipf_slope": zipf_slope(texts),
        "kl_3gram": kl_divergence(texts, reference_texts, n=3, alpha=alpha),
        "kl_alpha": alpha,
        "pack": pack.name,
        "pack_sha256": pack.sha256,
        "roles": list(pack.roles),
        "styles": list(pack.styles),
        "templates_per_kind": pack.counts(),
    }


def _distinct(texts: pl.Series, n: int, window: int, seed: int) -> dict[str, Any]:
    return {
        "raw": distinct_n(texts, n),
        "window": window,
        "windowed": asdict(windowed_distinct(texts, n, window, seed)),
    }
