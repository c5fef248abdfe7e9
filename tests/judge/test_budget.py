"""The budget: a run stops before exceeding it, keeps the replies it paid for, and the next run continues."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from rc1_lib.config.judge import Budget, JudgeSampling, Prices
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge.budget import Spending
from rc1_lib.judge.calls import Ask
from rc1_lib.judge.results import NOT_ASKED
from rc1_lib.run import open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.judge.bench import NUMBERS, Bench, dialogues
from tests.judge_server import Behaviour, running

PRICES = ("judge.prices.input=100", "judge.prices.output=200")
ASK = Ask("s" * 100, "u" * 100, {}, JudgeSampling(temperature=0.7, max_tokens=1000), "attempt", "key", ())


def _spending(max_usd: float | None = None, max_calls: int | None = None) -> Spending:
    return Spending(Budget(max_usd=max_usd, max_calls=max_calls), Prices(input=1.0, output=2.0))


def test_calls_in_flight_count_with_their_maximum_cost() -> None:
    spending = _spending(max_usd=0.005)
    most = spending.most(ASK)
    assert most == pytest.approx((100 * 1.0 + 1000 * 2.0) / 1e6)
    reserved = [spending.reserve(ASK), spending.reserve(ASK)]
    assert None not in reserved
    assert spending.has_to_wait(ASK)  # two can cost 0.0042 together; a third fits if they cost less
    assert spending.reserve(ASK) is None
    spending.settle(reserved[0], 0.0001)
    assert not spending.has_to_wait(ASK)
    spending.settle(reserved[1], None)  # cost unknown
    assert spending.usd == pytest.approx(0.0001 + most)
    assert spending.calls == 2
    spending.settle(spending.reserve(ASK) or 0.0, None)
    assert "max_usd (0.005) would be exceeded" in spending.spent(ASK)
    assert spending.reserve(ASK) is None


def test_a_run_stops_at_max_calls_and_the_next_run_continues(bench: Bench) -> None:
    with running(Behaviour(latency_ms=(10.0, 0.5))) as server:
        first = bench.score(server, dialogues(10), "judge.budget.max_calls=17")
        assert server.stats().requests == first.calls == 17
        assert "judge.budget.max_calls (17) is used up" in first.stopped
        assert Counter(first.replies["outcome"]) == {"ok": 17, "cancelled": 13}
        assert set(first.replies.filter(pl.col("outcome") == "cancelled")["reason"]) == {NOT_ASKED}
        assert first.rows.filter(~pl.col("scored")).select(pl.col(NUMBERS).is_not_null().any()).row(0) == (
            False,
        ) * len(NUMBERS)
        with pytest.raises(RC1Error, match="max_calls"):
            first.require(0.1)
        second = bench.score(server, dialogues(10), "judge.budget.max_calls=17")
        stats = server.stats()
    assert (second.stopped, second.coverage, second.calls) == ("", 1.0, 13)
    assert stats.answered == len(stats.billed_by_key) == 30
    assert bench.outcomes() == {"ok": 30, "hit": 17}


def test_a_run_never_exceeds_max_usd_and_the_next_run_continues(bench: Bench) -> None:
    more = ("judge.budget.max_usd=1.5", *PRICES)
    scored: list[float] = []
    with running(Behaviour(latency_ms=(5.0, 0.5))) as server:
        while not scored or scored[-1] < 1.0:
            judged = bench.score(server, dialogues(10), *more)
            stats = server.stats()
            spent = (stats.tokens_in * 100 + stats.tokens_out * 200) / 1e6
            assert 0 < judged.usd <= 1.5
            assert judged.coverage == 1.0 or "judge.budget.max_usd (1.5) would be exceeded" in judged.stopped
            assert judged.coverage > (scored[-1] if scored else 0.0)
            scored.append(judged.coverage)
            log = bench.log()
            assert log["cost_usd"].sum() == pytest.approx(spent)
    assert scored[0] < 1.0
    assert stats.answered == len(stats.billed_by_key) == 30


def test_without_max_tokens_the_budget_assumes_the_longest_reply() -> None:
    ask = Ask("", "", {}, JudgeSampling(temperature=None, max_tokens=None), "a", "k", ())
    spending = Spending(Budget(max_usd=1.0, max_calls=None), Prices(input=0, output=2))
    assert spending.most(ask) == pytest.approx(2 * 0.131072)


def test_an_input_price_without_an_output_price_raises_an_error() -> None:
    with pytest.raises(ConfigError, match=r"judge\.prices: .*output"):
        open_run(workspace=PROJECT_ROOT, overrides=("judge.prices={input: 1, output: null}",))
