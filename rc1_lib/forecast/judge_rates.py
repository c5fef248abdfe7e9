"""What a call of the judge costs, and how often a reply takes more than one: from the usage log of episodes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.estimate import NOTHING, Estimate, exactly, mean_of
from rc1_lib.run import Run
from rc1_lib.scoring.judge import open_store
from rc1_lib.scoring.providers import LIVE
from rc1_lib.scoring.usage import ANSWERED, AttemptOutcome
from rc1_lib.training.episode_judge import REPLIES

_LAST = 2000
"""Paid replies that are looked at: prices and habits of a model change."""
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class JudgeRates:
    """Of the judge that is configured.

    Attributes:
        calls: for a reply that can be read.
        usd: of a call.
    """

    calls: Estimate
    usd: Estimate


def judge_rates(run: Run) -> JudgeRates:
    """The rates of the configured judge; of one that nobody pays they are 0.

    Raises:
        RC1Error: when a live judge has not been paid for a reply about an episode yet.
    """
    judge = run.config.judge
    if judge.provider not in LIVE or not run.config.training.pays_judge:
        return JudgeRates(NOTHING, NOTHING)
    with open_store(run, f"{run.config.training.reward.scores}/{REPLIES}") as store:
        log = store.log()
    own = log.filter(pl.col("provider") == judge.provider, pl.col("model_asked") == (judge.model or ""))
    paid = own.filter(pl.col("outcome").is_in([str(one) for one in ANSWERED]), pl.col("cost_usd").is_not_null())
    return rates_of(paid.tail(_LAST))


def rates_of(paid: pl.DataFrame) -> JudgeRates:
    """The rates in lines of replies that were paid for.

    Raises:
        RC1Error: when there are too few.
    """
    good = paid.filter(pl.col("outcome") == AttemptOutcome.OK.value).height
    if paid.height < _FEWEST or not good:
        raise RC1Error(
            f"the usage log has {paid.height} replies about episodes by the configured judge, {good} of them read, "
            f"wanted at least {_FEWEST}: its cost cannot be known; run the pilot while the judge answers"
        )
    return JudgeRates(exactly(paid.height / good), mean_of(paid["cost_usd"].to_list()))
