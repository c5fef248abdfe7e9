"""The bill of a training: a timed pilot, hand-computed sums, the coverage of intervals, and the cap."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest

from rc1_lib.config.curriculum import Cap, ShadowLook
from rc1_lib.errors import RC1Error
from rc1_lib.forecast.bill import (
    Bill,
    JudgeRates,
    Pilot,
    PilotStep,
    cap_verdicts,
    evaluation_bill,
    judge_rates,
    rates_of,
    run_pilot,
    training_bill,
)
from rc1_lib.forecast.estimate import NOTHING, Estimate, exactly, mean_of
from rc1_lib.run import Run
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.ppo_run import prepare
from tests.judge.bench import dialogues, overrides
from tests.judge_server import Behaviour, running
from tests.judge_server.behaviour import MODEL
from tests.training.weighed import weigh

Tiny = Callable[..., Run]
FREE = JudgeRates(NOTHING, NOTHING)
STEADY = (PilotStep(36.0, 18.0, 8),) * 3


def with_steps(opened: Run, **config: int) -> Run:
    return replace(opened, config=opened.config.model_copy(update=config))


def test_constant_pilot_is_extrapolated_exactly(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    bill = training_bill(run, Pilot(STEADY, "cuda", 1), JudgeRates(exactly(1.25), exactly(0.01)))
    assert bill.hours == bill.gpu_hours == exactly(10.0)
    segments = -(-1000 // run.config.training.segment_steps)
    asked = 1000 * 8 + segments * run.config.judge.baseline.n
    assert bill.judge_calls == exactly(asked * run.config.judge.samples * 1.25)
    assert bill.usd.value == pytest.approx(0.01 * bill.judge_calls.value)
    assert training_bill(run, Pilot(STEADY, "cpu", 0), FREE) == Bill(exactly(10.0), NOTHING, NOTHING, NOTHING)


def test_gpu_hours_are_wall_clock_hours_times_gpus(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    four = Pilot(STEADY, "cuda", 4)
    for bill in (training_bill(run, four, FREE), evaluation_bill(run, 1, four, FREE)):
        assert bill.hours.value > 0 and bill.gpu_hours == bill.hours * 4
    assert training_bill(run, four, FREE).hours == exactly(10.0)


def test_intermediate_shadow_rollouts_are_billed(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    training = run.config.training.model_copy(update={"eval_shadow": ShadowLook(every_steps=300, prompts=6)})
    evaluating = replace(run, config=run.config.model_copy(update={"training": training}))
    plain, evaluated = (training_bill(one, Pilot(STEADY, "cpu", 0), FREE) for one in (run, evaluating))
    extra = evaluated.hours.value - plain.hours.value
    assert extra == pytest.approx(4 * 6 * 18 / 8 / 3600), "after steps 300, 600, 900 and 1000"


def test_evaluation_bill_counts_every_played_and_judged_episode(opened: Run) -> None:
    run = with_steps(opened, batch_size=8)
    held = run.config.training.held_out
    one, three = (evaluation_bill(run, seeds, Pilot(STEADY, "cpu", 0), FREE) for seeds in (1, 3))
    intermediate = held.between.checkpoints * min(held.between.prompts, held.prompts)
    assert one.hours.value == pytest.approx((4 * held.prompts + intermediate) * 18 / 8 / 3600)
    assert three.hours.value == pytest.approx((8 * held.prompts + 3 * intermediate) * 18 / 8 / 3600)
    judged = evaluation_bill(run, 1, Pilot(STEADY, "cpu", 0), JudgeRates(exactly(1.0), exactly(0.5)))
    judged_intermediate = held.between.checkpoints * min(held.between.prompts, held.judged)
    episodes = 2 * min(held.judged, held.prompts) + judged_intermediate
    assert judged.judge_calls.value == run.config.judge.samples * episodes


def test_interval_covers_the_true_mean_at_its_confidence() -> None:
    rng = random.Random(3)
    estimates = [mean_of([rng.gauss(10, 2) for _ in range(4)]) for _ in range(1000)]
    covered = sum(one.low <= 10 <= one.high for one in estimates)
    assert 930 <= covered <= 970, covered
    assert mean_of([1.0, 1.0]) == exactly(1.0) and mean_of([0.0, 9.0]).low == 0.0


def test_judge_rates_come_from_billed_replies() -> None:
    replies = pl.DataFrame({"outcome": ["ok", "bad_reply", "ok", "ok"], "cost_usd": [0.02, 0.04, 0.03, 0.03]})
    rates = rates_of(replies)
    assert rates.calls == exactly(4 / 3) and rates.usd.value == pytest.approx(0.03)
    assert rates.usd.low < 0.03 < rates.usd.high
    with pytest.raises(RC1Error, match=" 1 replies"):
        rates_of(replies.head(1))


@pytest.mark.parametrize(
    ("cap", "certain", "last"),
    [
        (Cap(hours=None, usd=None), [], ""),
        (Cap(hours=13, usd=7), [], ""),
        (Cap(hours=11, usd=None), [False], "training.cap.hours is 11"),
        (Cap(hours=5, usd=None), [True], "step 50 of 100"),
        (Cap(hours=5, usd=4.5), [True, False], "training.cap.usd is 4.5"),
    ],
)
def test_cap_verdict_compares_the_cap_with_the_estimate(cap: Cap, certain: list[bool], last: str) -> None:
    bill = Bill(Estimate(10, 8, 12), NOTHING, NOTHING, Estimate(5, 4, 6))
    found = cap_verdicts(bill, 100, cap)
    assert [one.certain for one in found] == certain
    assert last in (found[-1].words if found else "")
    assert all(asdict(one) for one in found)


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_pilot_is_timed_and_leaves_no_file(tiny: Tiny) -> None:
    run = tiny()
    prepared, before = prepare(run), files(run.workspace.root)
    pilot = run_pilot(prepared, run.config.seeds[0], 2)
    assert len(pilot.steps) == 2 and pilot.device == "cpu"
    for step in pilot.steps:
        assert 0 < step.playing < step.seconds
        assert 1 <= step.dialogues <= run.config.batch_size
    assert files(run.workspace.root) == before


def test_judge_rates_are_read_from_the_usage_log(tiny: Tiny) -> None:
    with running(Behaviour(delay="zero")) as server:
        settings = ("training.reward.judge=1", "judge.prices={input: 1, output: 2}", *overrides(server.base_url))
        run = weigh(tiny(*settings), {"answered": 0.5, "grounded": 0.3, "restrained": 0.2}, [MODEL])
        with pytest.raises(RC1Error, match=r" 0 replies .* 0 .* 2, "):
            judge_rates(run)
        scores = EpisodeJudge(run).score(dialogues(3))
    rates = judge_rates(run)
    assert rates.calls.value == 1.0
    assert rates.usd.value * scores.calls == pytest.approx(scores.usd)
    assert judge_rates(tiny(name="other")).usd.value == 0.0, "the rubric judge is free"
