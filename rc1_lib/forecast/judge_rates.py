"""The cost of a judge call, and calls per reply, from the usage log of episodes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.estimate import NOTHING, Estimate, exactly, mean_of
from rc1_lib.judge.calls import ANSWERED, AttemptOutcome
from rc1_lib.judge.judge import open_store
from rc1_lib.judge.providers import LIVE
from rc1_lib.run import Run
from rc1_lib.training.episode_judge import REPLIES

_LAST = 2000
"""How many recent paid replies count: prices and habits of a model change."""
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class JudgeRates:
    """Rates of the configured judge.

    Attributes:
        calls: per valid reply.
        usd: per call.
    """

    calls: Estimate
    usd: Estimate


def judge_rates(run: Run) -> JudgeRates:
    """The rates of the configured judge; 0 for a free one.

    Raises:
        RC1Error: when a live judge has no paid replies about episodes yet.
    """
    judge = run.config.judge
    if judge.provider not in LIVE or not run.config.training.pays_judge:
        return JudgeRates(NOTHING, NOTHING)
    if not judge.prices.known:
        raise RC1Error("judge.prices is not set, so nobody knows what the judge costs; set its input and output")
    with open_store(run, f"{run.config.training.reward.scores}/{REPLIES}") as store:
        log = store.log()
    own = log.filter(pl.col("provider") == judge.provider, pl.col("model_asked") == (judge.model or ""))
    paid = own.filter(pl.col("outcome").is_in([str(one) for one in ANSWERED]), pl.col("cost_usd").is_not_null())
    return rates_of(paid.tail(_LAST))


def rates_of(paid: pl.DataFrame) -> JudgeRates:
    """The rates in lines of paid replies.

    Raises:
        RC1Error: when there are too few.
    """
    good = paid.filter(pl.col("outcome") == AttemptOutcome.OK.value).height
    if paid.height < _FEWEST or not good:
        raise RC1Error(
            f"the usage log has {paid.height} replies about episodes by the configured judge, {good} of them valid, "
            f"expected at least {_FEWEST}, so its cost is unknown; run the pilot while the judge answers"
        )
    return JudgeRates(exactly(paid.height / good), mean_of(paid["cost_usd"].to_list()))
