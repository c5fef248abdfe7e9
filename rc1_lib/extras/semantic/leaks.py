"""Shadow questions in other words: rows whose question lies nearer to one than unrelated questions ever do.

No cosine is near by itself: two stories about apples are at 0.8, two questions about different rivers at 0.2. So each
shadow question is measured by its own surroundings, the mean cosine of its three nearest neighbours among the other
shadow questions. How far unrelated questions come above that, its *lead*, is measured on the shadow set too, where
every question is a stranger to all others; the tail of these leads gives the bound. No row has a say in it: rows that
came near one another could otherwise hide a leak.

A model that knows nothing of a language leads nowhere and would accuse nobody. So it is tried on paraphrases of ours
(`paraphrases.jsonl`): how many of them would lie above the bound, if they were of the shadow questions?
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
"""`question` and `in_other_words`, in two languages, half of them `of` the embedded questions and half of everyday."""
NEIGHBOURS = 3
"""Those of a shadow question that are its surroundings."""

_TAIL = 10
"""The tail is the tenth of the shadow questions that lead most."""
_FEWEST = 100
"""With fewer shadow questions the tail would be a handful."""
_AT_ONCE = 1000
"""Questions whose vectors are in memory at a time, and between two reports of progress."""
_ADVICE = (
    "read the rows listed next to their shadow questions: drop those that ask the same; if all ask something else, "
    "lower gates.leakage.semantic.false_alarms"
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How near strangers come to each shadow question.

    Attributes:
        near: of each shadow question (M,), the mean cosine of its nearest neighbours in the shadow set.
        leads: of each shadow question (M,), by how much it surpasses `near` of the one that it surpasses most.
    """

    near: NDArray[np.float64]
    leads: NDArray[np.float64]

    def bound(self, questions: int, false_alarms: float) -> float:
        """The lead that of so many unrelated questions only `false_alarms` surpass on average.

        The tail of the leads is taken to be exponential, as peaks over a high threshold often are; its scale comes from
        their median, which two shadow questions that repeat one another hardly move.
        """
        tail = len(self.leads) // _TAIL
        leads = np.sort(self.leads)
        start = leads[-tail - 1]
        scale = float(np.median(leads[-tail:] - start) / np.log(2))
        return float(start + scale * max(0.0, np.log(tail / len(leads) * questions / false_alarms)))


def surroundings(held: Vectors) -> Surroundings:
    """How near strangers come to each of the shadow questions `held` (M, D), by these alone."""
    cosines = held.astype(np.float64) @ held.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.sort(cosines, axis=1)[:, -NEIGHBOURS - 1 :]
    near = nearest[:, 1:].mean(axis=1)
    # A stranger that is itself among the neighbours is measured by the next one instead.
    among = cosines >= nearest[:, [1]]
    without = near[:, None] + (nearest[:, [0]] - np.where(among, cosines, nearest[:, [0]])) / NEIGHBOURS
    return Surroundings(near, (cosines - without).max(axis=0))


def leaks_in_other_words(
    rows: pl.DataFrame, shadow: pl.DataFrame, limits: SemanticLeaks, folder: Path
) -> tuple[list[Check], tuple[Mapping[str, Any], ...]]:
    """Look for rows whose question is a shadow question in other words.

    Args:
        rows: the pool.
        shadow: the shadow set.
        limits: the thresholds.
        folder: of the sentence-embedding model.

    Returns:
        The checks, and the rows accused: each with its shadow row, their cosine, and the cosine from which it counts.

    Raises:
        RC1Error: when the model cannot be read, or there are too few shadow questions to measure by.
    """
    if shadow.height < _FEWEST:
        raise RC1Error(
            f"gates.leakage.semantic: {shadow.height} shadow questions, expected at least {_FEWEST}: the bound is "
            f"measured on them; raise shadow.n, or set gates.leakage.semantic.model to null"
        )
    if rows.is_empty():
        return [], ()  # failed by the number of rows compared
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
    """Of each language of the shadow set: the share of paraphrases that would count, were they of its questions.

    `counts_from` (M,) is the cosine above which they count: infinite for a question that the model does not read to its
    end, since our paraphrases are short and would hide that.
    """
    pairs = [json.loads(line) for line in PARAPHRASES.read_text(encoding="utf-8").splitlines()]
    for language in sorted(languages.unique()):
        own = [pair for pair in pairs if pair["lang"] == language]
        first, second = (model.vectors([pair[side] for pair in own])[0] for side in ("question", "in_other_words"))
        cosines = second @ first.T
        others = np.where(np.eye(len(own), dtype=bool), -np.inf, cosines).max(axis=1)
        # To a model that cannot read them all texts are one, and every paraphrase would be as near as can be.
        known = np.where(cosines.diagonal() > others, cosines.diagonal(), -np.inf)
        needed = counts_from[(languages == language).to_numpy()]
        share = float((known[:, None] > needed).mean())
        yield at_least(
            f"paraphrases that it would recognise [{language}]", share, least,
            f"among these questions the model cannot tell a paraphrase in language '{language}' from another question, "
            f"or it reads only their first {model.longest} tokens; name a model that knows the language better or "
            f"reads more, raise gates.leakage.semantic.false_alarms (more rows are then listed), or set "
            f"gates.leakage.semantic.model to null",
        )  # fmt: skip
