"""The judge's bill, estimated before the first call: it matches what the server bills; a missing price is not 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rc1_lib.calibration.overclar_ablation import overclar_ablation
from rc1_lib.calibration.reward_hacking import attack_reward
from rc1_lib.calibration.shadow_run import CALIBRATED, baseline_run, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.config.judge import Prices
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.forecast.judge_cost import (
    Stage,
    Tokens,
    above_limit,
    check_preflight_cost,
    cost_of,
    preflight_stages,
    shadow_and_takes,
    tokens_of,
)
from rc1_lib.gates import judge_probe
from rc1_lib.judge.budget import prices_of
from rc1_lib.run import Run, open_run
from tests.judge.bench import overrides
from tests.judge_server import Behaviour, running

FEW = ("judge.samples=2", "calibration.n=40", "gates.reward_hacking.prompts=2", "judge.prices={input: 1, output: 10}")


def test_estimate_matches_the_bill_of_the_server(fresh_copy: Callable[..., Run]) -> None:
    with running(Behaviour()) as server:
        run = fresh_copy(*overrides(server.base_url), *FEW)
        data, old = shadow_and_takes(run), dict(run.config.reward.old_weights)
        stages = preflight_stages(run, data)
        most = cost_of(stages, tokens_of(run), run.config.judge.prices)
        rounds_alone = preflight_stages(run, data, calibrates=False)[0]
        assert (rounds_alone.name, rounds_alone.calls) == ("shadow_run", stages[0].calls)
        assert server.stats().requests == 0 and tokens_of(run).measured == 0 and most.stored == 0

        baseline_run(run)
        assert server.stats().answered == stages[0].calls
        weight_calib(run)
        attack_reward(run, old)
        overclar_ablation(run, old)
        shadow_run(run, CALIBRATED, old)
        judge_probe.SPEC.gate(Evidence(run), 1)
        judge_probe.SPEC.gate(Evidence(run), 1)
        billed = server.stats()
        assert billed.answered == billed.requests == most.calls == sum(one.calls for one in stages)
        assert billed.tokens_in < most.tokens_in and billed.tokens_out < most.tokens_out
        paid = (billed.tokens_in + 10 * billed.tokens_out) / 1e6
        assert most.usd is not None and paid < most.usd

        left = preflight_stages(run, data)
        assert [one.calls for one in left] == [0, 0, 0, stages[-1].calls], "stored replies are free"
        assert [one.stored for one in left[:-1]] == [one.calls for one in stages[:-1]]
        measured = cost_of(stages, tokens_of(run), run.config.judge.prices)
        assert tokens_of(run).measured and measured.tokens_in == pytest.approx(billed.tokens_in, rel=0.05)
        assert measured.usd == pytest.approx(paid, rel=0.05)


def test_missing_price_is_reported_and_not_zero(tmp_path: Path) -> None:
    def run_of(*settings: str) -> Run:
        return open_run(profile="local", workspace=tmp_path, overrides=("judge.provider=openai", *settings))

    stages, tokens, model = [Stage("s", 10, 0, 1e6)], Tokens(1e5, 2.0, 2), "judge.model=gpt-6-luna"
    prices, why = prices_of(run_of(model, "judge.prices={input: null, output: null}").config.judge)
    assert cost_of(stages, tokens, prices).usd is None
    assert "gpt-6-luna" in why and "judge.prices" in why
    unknown = run_of(model, "judge.prices={input: null, output: null}", "judge.ask_above_usd=0")
    assert above_limit(unknown, stages) == ""
    prices, source = prices_of(run_of(model, "judge.prices={input: 3, output: 4}").config.judge)
    assert cost_of(stages, tokens, prices).usd == pytest.approx(3 + 80e-6) and source == "judge.prices"
    assert cost_of(stages, tokens, Prices(input=0, output=0)).usd == 0


@pytest.mark.parametrize(("calls", "most", "asks"), [(20_001, 20_000, True), (20_000, 20_000, False)])
def test_training_at_an_unknown_price_needs_agreement_above_the_call_budget(
    calls: int, most: int | None, asks: bool, tmp_path: Path
) -> None:
    """A training has no budget of its own, and nobody could say what it may cost."""
    limit = f"judge.budget.max_calls={'null' if most is None else most}"
    run = open_run(workspace=tmp_path, overrides=(*overrides("http://127.0.0.1:9/v1"), "judge.prices.input=null",
                                                  "judge.prices.output=null", limit))  # fmt: skip
    why = above_limit(run, [Stage("training", calls, 0, 1e9)])
    assert (f"{calls:,} times at an unknown price" in why) == asks and bool(why) == asks
    assert above_limit(run, [Stage("calibration", 10**7, 0, 1e9)]) == "", "a preflight has judge.budget"


def test_cost_above_the_limit_is_rejected_before_the_first_call(fresh_copy: Callable[..., Run]) -> None:
    with running(Behaviour()) as server:
        run = fresh_copy(*overrides(server.base_url), *FEW, "judge.ask_above_usd=0.01")
        with pytest.raises(RC1Error, match=r"USD, .*judge\.ask_above_usd .*0\.01; rc1 probe-scorer.*Nobody"):
            check_preflight_cost(run, rounds=(1, 2), agreed=False)
        with pytest.raises(RC1Error, match=r"judge\.ask_above_usd"):
            check_preflight_cost(run, rounds=(1, 2), agreed=False, calibrates=False)
        check_preflight_cost(run, rounds=(), agreed=False, calibrates=False)
        check_preflight_cost(run, rounds=(1, 2), agreed=True)
        for enough in (1000.0, None):
            judge = run.config.judge.model_copy(update={"ask_above_usd": enough})
            other = replace(run, config=run.config.model_copy(update={"judge": judge}))
            check_preflight_cost(other, rounds=(1, 2), agreed=False)
        assert server.stats().requests == 0
