"""Score dialogues with the run's judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from rc1_lib.errors import RC1Error, RowError
from rc1_lib.extras.notebook.cards import Card, Shown
from rc1_lib.extras.notebook.off_the_loop import off_the_loop
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.calls import NOTICE
from rc1_lib.judge.judge import UNKNOWN_COST, check_judge, open_judge, open_store
from rc1_lib.judge.results import Judged
from rc1_lib.records import Message
from rc1_lib.run import Run


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Shown):
    """The judge's scores of dialogues.

    Attributes:
        rows: one row per dialogue, in the given order: `id` (or its place from 0), `dialogue` (SHA-256 of its content),
            `scored`, `reason` (why not), and for each criterion the median of the judge's samples in [0, 1] under its
            name, and `{criterion}_variance`; all null without a score. Further columns: see
            `rc1_lib.judge.results.Judged`.
        dimensions: the criteria that the judge grades.
        coverage: share of the dialogues that are scored.
        complete: whether the scores are reliable: enough coverage, and the judge did not stop early.
        why: why not; empty if they are.
        calls: calls sent; stored scores need none.
        usd: their cost; None if the judge's prices are not configured.
        test_double: whether some scores come from RC1's test double.
    """

    rows: pl.DataFrame
    dimensions: tuple[str, ...]
    coverage: float
    complete: bool
    why: str
    calls: int
    usd: float | None
    test_double: bool

    def card(self) -> Card:
        """How many are scored, the cost, and the mean of the medians of each criterion."""
        head = f"{int(self.rows['scored'].sum())} of {self.rows.height} dialogues scored"
        cost = UNKNOWN_COST if self.usd is None else f"{self.usd:.2f} USD"
        lines = [f"{self.calls} calls, {cost}", *([self.why] if self.why else [])]
        means = pl.DataFrame(
            {
                "dimension": self.dimensions,
                "mean of medians": [self.rows[name].mean() for name in self.dimensions],
                "mean variance": [self.rows[f"{name}_variance"].mean() for name in self.dimensions],
            },
            schema_overrides={"mean of medians": pl.Float64, "mean variance": pl.Float64},
        )
        return Card(head if self.complete else f"{head}, INCOMPLETE", [*[NOTICE] * self.test_double, *lines], [means])


def score_dialogues(run: Run, dialogues: pl.DataFrame | Sequence[Sequence[Message]], *, fresh: bool = False) -> Scores:
    """Score dialogues with the configured judge, like `rc1 score`.

    Only the judge's store is written: it keeps paid scores, so repeating the call costs nothing. Works on a running
    event loop, as in Jupyter.

    Args:
        run: from `open_run`: its judge, its key and budget, its store.
        dialogues: rows with a column `messages`, and `id` if they have names; or the chat messages of each.
        fresh: ignore stored scores.

    Raises:
        RC1Error: if one of them is not a dialogue, or the judge cannot be asked; no calls are made then.
    """
    names, messages = _dialogues(dialogues)
    judged, dimensions = off_the_loop(lambda: _score(run, messages, fresh))
    try:
        judged.require(run.config.gates.shared.min_coverage)
        why = ""
    except RC1Error as error:
        why = str(error)
    return Scores(
        judged.rows.insert_column(0, names), dimensions, judged.coverage, not why, why, judged.calls,
        known_usd(run.config.judge, judged.usd, judged.calls),
        judged.test_double,
    )  # fmt: skip


def _dialogues(given: pl.DataFrame | Sequence[Sequence[Message]]) -> tuple[pl.Series, list[Sequence[Message]]]:
    messages: list[Sequence[Message]]
    if isinstance(given, pl.DataFrame):
        if "messages" not in given.columns:
            raise RowError("the frame of dialogues: has no column 'messages'; expected chat messages in it")
        messages = given["messages"].to_list()
        names = given["id"].cast(pl.String) if "id" in given.columns else None
    else:
        messages, names = list(given), None
    if not messages:
        raise RowError("found no dialogues to score, expected at least one")
    return pl.Series("id", [str(place) for place in range(len(messages))]) if names is None else names, messages


def _score(run: Run, messages: Sequence[Sequence[Message]], fresh: bool) -> tuple[Judged, tuple[str, ...]]:
    check_judge(run)
    with open_store(run) as store:
        judge = open_judge(run, store)
        return judge.score(messages, fresh=fresh), tuple(judge.spec.dimensions)
