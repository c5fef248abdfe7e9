"""The bill: a timed pilot, hand-worked sums, intervals that hold the truth, and where the cap lies."""

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
from rc1_lib.testing.judge_server import Behaviour, running
from rc1_lib.testing.judge_server.behaviour import MODEL
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.ppo_run import prepare
from tests.judge.bench import dialogues, overrides
from tests.training.weighed import weigh

Tiny = Callable[..., Run]
FREE = JudgeRates(NOTHING, NOTHING)
STEADY = (PilotStep(36.0, 18.0, 8),) * 3


def with_steps(opened: Run, **config: int) -> Run:
    return replace(opened, config=opened.config.model_copy(update=config))


def test_a_steady_pilot_is_multiplied_out(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    bill = training_bill(run, Pilot(STEADY, "cuda", 1), JudgeRates(exactly(1.25), exactly(0.01)))
    assert bill.hours == bill.gpu_hours == exactly(10.0)
    segments = -(-1000 // run.config.training.segment_steps)
    asked = 1000 * 8 + segments * run.config.judge.baseline.n
    assert bill.judge_calls == exactly(asked * run.config.judge.samples * 1.25)
    assert bill.usd.value == pytest.approx(0.01 * bill.judge_calls.value)
    assert training_bill(run, Pilot(STEADY, "cpu", 0), FREE) == Bill(exactly(10.0), NOTHING, NOTHING, NOTHING)


def test_every_gpu_is_paid_for_by_the_hour_and_hours_are_those_of_the_clock(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    four = Pilot(STEADY, "cuda", 4)
    for bill in (training_bill(run, four, FREE), evaluation_bill(run, 1, four, FREE)):
        assert bill.hours.value > 0 and bill.gpu_hours == bill.hours * 4
    assert training_bill(run, four, FREE).hours == exactly(10.0)


def test_the_looks_on_the_way_are_on_the_bill(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    looking = run.config.training.model_copy(update={"eval_shadow": ShadowLook(every_steps=300, prompts=6)})
    shown = replace(run, config=run.config.model_copy(update={"training": looking}))
    plain, looked = (training_bill(one, Pilot(STEADY, "cpu", 0), FREE) for one in (run, shown))
    assert looked.hours.value - plain.hours.value == pytest.approx(4 * 6 * 18 / 8 / 3600), "300, 600, 900 and the last"


def test_the_evaluation_is_every_episode_that_it_plays_and_judges(opened: Run) -> None:
    run = with_steps(opened, batch_size=8)
    held = run.config.training.held_out
    one, three = (evaluation_bill(run, seeds, Pilot(STEADY, "cpu", 0), FREE) for seeds in (1, 3))
    on_the_way = held.between.checkpoints * min(held.between.prompts, held.prompts)
    assert one.hours.value == pytest.approx((4 * held.prompts + on_the_way) * 18 / 8 / 3600)
    assert three.hours.value == pytest.approx((8 * held.prompts + 3 * on_the_way) * 18 / 8 / 3600)
    judged = evaluation_bill(run, 1, Pilot(STEADY, "cpu", 0), JudgeRates(exactly(1.0), exactly(0.5)))
    judged_on_the_way = held.between.checkpoints * min(held.between.prompts, held.judged)
    episodes = 2 * min(held.judged, held.prompts) + judged_on_the_way
    assert judged.judge_calls.value == run.config.judge.samples * episodes


def test_the_interval_holds_the_true_mean_as_often_as_it_says() -> None:
    rng = random.Random(3)
    found = [mean_of([rng.gauss(10, 2) for _ in range(4)]) for _ in range(1000)]
    held = sum(one.low <= 10 <= one.high for one in found)
    assert 930 <= held <= 970, held
    assert mean_of([1.0, 1.0]) == exactly(1.0) and mean_of([0.0, 9.0]).low == 0.0


def test_rates_come_from_replies_that_were_paid_for() -> None:
    paid = pl.DataFrame({"outcome": ["ok", "bad_reply", "ok", "ok"], "cost_usd": [0.02, 0.04, 0.03, 0.03]})
    rates = rates_of(paid)
    assert rates.calls == exactly(4 / 3) and rates.usd.value == pytest.approx(0.03)
    assert rates.usd.low < 0.03 < rates.usd.high
    with pytest.raises(RC1Error, match=" 1 replies"):
        rates_of(paid.head(1))


@pytest.mark.parametrize(
    ("cap", "certain", "words"),
    [
        (Cap(hours=None, usd=None), [], ""),
        (Cap(hours=13, usd=7), [], ""),
        (Cap(hours=11, usd=None), [False], "may pause there, close to its end"),
        (Cap(hours=5, usd=None), [True], "will pause there, at about step 50 of 100"),
        (Cap(hours=5, usd=4.5), [True, False], "training.cap.usd is 4.5"),
    ],
)
def test_the_cap_is_set_beside_what_is_expected(cap: Cap, certain: list[bool], words: str) -> None:
    bill = Bill(Estimate(10, 8, 12), NOTHING, NOTHING, Estimate(5, 4, 6))
    found = cap_verdicts(bill, 100, cap)
    assert [one.certain for one in found] == certain
    assert words in (found[-1].words if found else "")
    assert all(asdict(one) for one in found)


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_a_pilot_is_timed_and_forgotten(tiny: Tiny) -> None:
    run = tiny()
    prepared, before = prepare(run), files(run.workspace.root)
    pilot = run_pilot(prepared, run.config.seeds[0], 2)
    assert len(pilot.steps) == 2 and pilot.device == "cpu"
    for step in pilot.steps:
        assert 0 < step.playing < step.seconds
        assert 1 <= step.dialogues <= run.config.batch_size
    assert files(run.workspace.root) == before


def test_what_a_live_judge_takes_is_read_off_its_usage_log(tiny: Tiny) -> None:
    with running(Behaviour(delay="zero")) as server:
        settings = ("training.reward.judge=1", "judge.prices={input: 1, output: 2}", *overrides(server.base_url))
        run = weigh(tiny(*settings), {"answered": 0.5, "grounded": 0.3, "restrained": 0.2}, [MODEL])
        with pytest.raises(RC1Error, match=r" 0 replies .* 0 .* 2, "):
            judge_rates(run)
        scores = EpisodeJudge(run).score(dialogues(3), 1)
    rates = judge_rates(run)
    assert rates.calls.value == 1.0
    assert rates.usd.value * scores.calls == pytest.approx(scores.usd)
    assert judge_rates(tiny(name="other")).usd.value == 0.0, "the rubric is paid by nobody"
