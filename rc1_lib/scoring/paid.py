"""What the attempts in a store have cost, by its usage log: those of processes that were killed are in it too."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from rc1_lib.run import Run
from rc1_lib.scoring.attempts import blank_ask
from rc1_lib.scoring.budget import Spending
from rc1_lib.scoring.judge import open_store, read_spec
from rc1_lib.scoring.maintenance import as_asked
from rc1_lib.scoring.store import Store
from rc1_lib.scoring.usage_lines import AttemptOutcome


@dataclass(frozen=True, slots=True)
class Paid:
    """What attempts took.

    Attributes:
        calls: that were sent.
        usd: their known costs, and for every one of unknown outcome the most that it can have cost.
    """

    calls: int = 0
    usd: float = 0.0


def paid_in(run: Run, where: str, runs: Collection[str] | None = None) -> Paid:
    """What was paid for by a store's usage log, counted as a budget counts.

    Args:
        run: whose judge, prices and instructions.
        where: path of the store, below the workspace; without a file nothing was paid.
        runs: names in the log of those whose attempts count; all by default.

    Raises:
        RC1Error: when the file is no store, or the instructions cannot be read.
    """
    if not run.workspace.path(where).exists():
        return Paid()
    with open_store(run, where) as store:
        log = store.log().filter(pl.col("outcome") != AttemptOutcome.HIT.value)
        if runs is not None:
            log = log.filter(pl.col("run_id").is_in(list(runs)))
        unknown = log.filter(pl.col("cost_usd").is_null())
        return Paid(log.height, float(log["cost_usd"].sum()) + _most(run, store, unknown))


def _most(run: Run, store: Store, lines: pl.DataFrame) -> float:
    if lines.is_empty():
        return 0.0
    config, spec = run.config.judge, read_spec(run)
    spending, total = Spending(config.budget, config.prices), 0.0
    for dialogue, sample in lines.select("dialogue", "sample").iter_rows():
        messages = store.dialogue(dialogue)
        assert messages is not None, "what is asked about is remembered first"
        total += spending.most(blank_ask(spec, config, as_asked(messages), sample))
    return total
