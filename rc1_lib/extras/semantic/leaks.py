"""Find reworded shadow questions: rows whose question is closer to one than unrelated questions ever are.

No cosine is high by itself: two stories about apples have 0.8, two questions about different rivers 0.2. So each shadow
question has its own reference, the mean cosine of its three nearest neighbours among the other shadow questions. How
far unrelated questions exceed it, their *lead*, is measured on the shadow set too, where all questions are unrelated.
The tail of these leads gives the bound. The rows themselves do not affect it; otherwise similar rows could hide a leak.

A model that does not know a language has no leads and would find nothing. So it is tested on our own paraphrases
(`paraphrases.jsonl`): how many of them would exceed the bound, if they were paraphrases of shadow questions?
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.checks import MAX_OFFENDERS, at_least, at_most, info
from rc1_lib.config.thresholds import SemanticLeaks
from rc1_lib.errors import RC1Error
from rc1_lib.extras.semantic.sentence_model import SentenceModel, Vectors
from rc1_lib.gates.leakage import question_texts
from rc1_lib.records import Check
from rc1_lib.runtime.batches import slices
from rc1_lib.runtime.progress import report_progress

PARAPHRASES = Path(__file__).with_name("paraphrases.jsonl")
"""`question` and `in_other_words` in two languages; half `of` the bundled questions, half everyday questions."""
NEIGHBOURS = 3
"""Number of nearest neighbours whose mean cosine is a shadow question's reference."""

_TAIL = 10
"""The tail is the tenth of the shadow questions with the highest leads."""
_FEWEST = 100
"""With fewer shadow questions the tail would be too small."""
_AT_ONCE = 1000
"""Number of questions whose vectors are in memory at a time, and between two progress reports."""
_ADVICE = (
    "read the rows listed next to their shadow questions: drop those that ask the same; if all ask something else, "
    "lower gates.leakage.semantic.false_alarms"
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How close unrelated questions come to each shadow question.

    Attributes:
        near: (M,), mean cosine of the nearest neighbours of each shadow question in the shadow set.
        leads: (M,), the largest amount by which each shadow question exceeds `near` of another one.
    """

    near: NDArray[np.float64]
    leads: NDArray[np.float64]

    def bound(self, questions: int, false_alarms: float) -> float:
        """Return the lead that only `false_alarms` of so many unrelated questions exceed on average.

        The tail of the leads is assumed to be exponential, as peaks over a high threshold often are. Its scale comes
        from their median, which two near-identical shadow questions hardly change.
        """
        tail = len(self.leads) // _TAIL
        leads = np.sort(self.leads)
        start = leads[-tail - 1]
        scale = float(np.median(leads[-tail:] - start) / np.log(2))
        return float(start + scale * max(0.0, np.log(tail / len(leads) * questions / false_alarms)))


def surroundings(held: Vectors) -> Surroundings:
    """Measure how close unrelated questions come to each shadow question in `held` (M, D)."""
    cosines = held.astype(np.float64) @ held.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.sort(cosines, axis=1)[:, -NEIGHBOURS - 1 :]
    near = nearest[:, 1:].mean(axis=1)
    # A question that is among the neighbours itself is compared with the next neighbour instead.
    among = cosines >= nearest[:, [1]]
    without = near[:, None] + (nearest[:, [0]] - np.where(among, cosines, nearest[:, [0]])) / NEIGHBOURS
    return Surroundings(near, (cosines - without).max(axis=0))


def leaks_in_other_words(
    rows: pl.DataFrame, shadow: pl.DataFrame, limits: SemanticLeaks, folder: Path
) -> tuple[list[Check], tuple[Mapping[str, Any], ...]]:
    """Find rows whose question is a reworded shadow question.

    Args:
        rows: the pool.
        shadow: the shadow set.
        limits: the thresholds.
        folder: of the sentence-embedding model.

    Returns:
        The checks, and the rows found, each with its shadow row, their cosine, and the bound of the cosine.

    Raises:
        RC1Error: if the model cannot be read, or there are too few shadow questions to measure the bound.
    """
    if shadow.height < _FEWEST:
        raise RC1Error(
            f"gates.leakage.semantic: found {shadow.height} shadow questions, expected at least {_FEWEST} to measure "
            "the bound; raise shadow.n, or set gates.leakage.semantic.model to null"
        )
    if rows.is_empty():
        return [], ()  # the check of the number of rows fails
    model = SentenceModel(folder)
    held, unread = model.vectors(question_texts(shadow).to_list())
    around = surroundings(held)
    asked = rows.select("id", "task", text=question_texts(rows))
    texts = asked["text"].unique(maintain_order=True)
    bound = around.bound(len(texts), limits.false_alarms)
    found, highest, cut = list[pl.DataFrame](), -np.inf, 0
    for part in slices(len(texts), _AT_ONCE):
        report_progress("questions compared by meaning", part.start, len(texts))
        own, longer = model.vectors(texts[part].to_list())
        cut += int(longer.sum())
        cosines = own @ held.T
        leads = cosines - around.near
        nearest = leads.argmax(axis=1)
        lead = leads.max(axis=1)
        highest = max(highest, float(lead.max()))
        leaks = np.flatnonzero(lead > bound)
        found.append(_listed(texts[part].gather(leaks), cosines[leaks, nearest[leaks]], nearest[leaks], around, bound))
    report_progress("questions compared by meaning", len(texts), len(texts))
    leaks_of_rows = asked.join(pl.concat(found), on="text").sort(
        pl.col("similarity") - pl.col("bound"), descending=True, maintain_order=True
    )
    checks = [
        at_most("rows that ask a shadow question in other words", leaks_of_rows.height, 0, _ADVICE),
        *_recognised(model, np.where(unread, np.inf, around.near + bound), shadow["lang"], limits.min_found),
        info("lead over its surroundings from which a question counts", round(bound, 4)),
        info("highest lead of a row", round(highest, 4)),
        info("shadow questions in surroundings too dense to tell", int((around.near + bound >= 1).sum())),
        info(f"questions longer than the {model.longest} tokens that are compared", cut),
    ]
    offenders = leaks_of_rows.head(MAX_OFFENDERS).select(
        "id", "task", shadow_id=shadow["id"].gather(leaks_of_rows["held"].head(MAX_OFFENDERS)),
        measure=pl.lit("cosine"), similarity="similarity", bound="bound", where=pl.lit("question"),
        reason=pl.lit("leak"),
    )  # fmt: skip
    return checks, tuple(offenders.iter_rows(named=True))


def _listed(
    texts: pl.Series, cosines: Vectors, held: NDArray[np.intp], around: Surroundings, bound: float
) -> pl.DataFrame:
    columns = {"text": texts, "similarity": cosines, "held": held, "bound": around.near[held] + bound}
    return (
        pl.DataFrame(columns)
        .cast({"similarity": pl.Float64, "held": pl.UInt32})
        .with_columns(pl.col("similarity", "bound").round(4))
    )


def _recognised(
    model: SentenceModel, counts_from: NDArray[np.float64], languages: pl.Series, least: float
) -> Iterable[Check]:
    """Yield for each language of the shadow set the share of paraphrases that would be found.

    `counts_from` (M,) is the cosine above which they count. It is infinite for a question that the model truncates,
    because our paraphrases are short and would hide that.
    """
    pairs = [json.loads(line) for line in PARAPHRASES.read_text(encoding="utf-8").splitlines()]
    for language in sorted(languages.unique()):
        own = [pair for pair in pairs if pair["lang"] == language]
        first, second = (model.vectors([pair[side] for pair in own])[0] for side in ("question", "in_other_words"))
        cosines = second @ first.T
        others = np.where(np.eye(len(own), dtype=bool), -np.inf, cosines).max(axis=1)
        # If the model cannot read them, all texts look the same, and every paraphrase would be a perfect match.
        known = np.where(cosines.diagonal() > others, cosines.diagonal(), -np.inf)
        needed = counts_from[(languages == language).to_numpy()]
        share = float((known[:, None] > needed).mean())
        yield at_least(
            f"paraphrases that it would recognise [{language}]", share, least,
            f"the model cannot distinguish paraphrases in language '{language}' from other questions of this set, or "
            f"it reads only their first {model.longest} tokens; use a model that knows the language better or reads "
            "more, raise gates.leakage.semantic.false_alarms (which lists more rows), or set "
            "gates.leakage.semantic.model to null",
        )  # fmt: skip
