"""What a training will take: a timed pilot, sums worked by hand, and the cap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rc1_lib.config.curriculum import Cap
from rc1_lib.errors import RC1Error
from rc1_lib.forecast.bill import Bill, Pilot, cap_reached, evaluation_bill, run_pilot, training_bill
from rc1_lib.run import Run
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.ppo_run import prepare
from tests.judge.bench import dialogues, overrides
from tests.judge_server import Behaviour, running
from tests.judge_server.behaviour import MODEL
from tests.training.weighed import weigh

Tiny = Callable[..., Run]
STEADY = Pilot(36.0, 18.0, 8.0, "cpu")


def with_steps(opened: Run, **config: int) -> Run:
    return replace(opened, config=opened.config.model_copy(update=config))


def test_step_is_multiplied_by_all_steps_and_seeds(opened: Run) -> None:
    run = with_steps(opened, steps=1000, batch_size=8)
    assert training_bill(run, STEADY, 1) == Bill(10.0, 0, 0.0)
    assert training_bill(run, STEADY, 3).hours == 30.0


def test_evaluation_bill_counts_every_played_episode(opened: Run) -> None:
    run = with_steps(opened, batch_size=8)
    held = run.config.training.held_out
    for seeds, sides in ((1, 4), (3, 8)):
        hours = sides * held.prompts * 18 / 8 / 3600
        assert evaluation_bill(run, STEADY, seeds).hours == pytest.approx(hours)


@pytest.mark.parametrize(
    ("cap", "said"),
    [
        (Cap(hours=None, usd=None), []),
        (Cap(hours=5, usd=None), ["training.cap.hours is 5: a seed's run will pause at about step 50 of 100"]),
        (Cap(hours=None, usd=4), ["training.cap.usd is 4: a seed's run will pause at about step 80 of 100"]),
    ],
)
def test_cap_that_a_run_reaches_is_named_with_its_step(cap: Cap, said: list[str]) -> None:
    assert cap_reached(Bill(10.0, 100, 5.0), 100, cap) == said
    assert cap_reached(Bill(0.0, 100, None), 100, Cap(hours=1, usd=1)) == [], "an unknown price reaches nothing"


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_pilot_is_timed_and_leaves_no_file(tiny: Tiny) -> None:
    run = tiny()
    prepared, before = prepare(run), files(run.workspace.root)
    pilot = run_pilot(prepared, run.config.seeds[0])
    assert 0 < pilot.playing < pilot.seconds and pilot.device == "cpu"
    assert 1 <= pilot.dialogues <= run.config.batch_size
    assert files(run.workspace.root) == before


def test_calls_are_priced_by_the_replies_about_episodes(tiny: Tiny) -> None:
    with running(Behaviour(delay="zero")) as server:
        settings = ("training.reward.judge=1", "judge.prices={input: 1, output: 2}", *overrides(server.base_url))
        run = weigh(tiny(*settings), {"answered": 0.5, "grounded": 0.3, "restrained": 0.2}, [MODEL])
        with pytest.raises(RC1Error, match="no two replies about episodes"):
            training_bill(run, STEADY, 1)
        scores = EpisodeJudge(run).score(dialogues(3))
    bill = training_bill(run, STEADY, 1)
    segments = -(-run.config.steps // run.config.training.segment_steps)
    asked = 8 * run.config.steps + segments * run.config.judge.baseline.n
    assert bill.judge_calls == asked * run.config.judge.samples
    assert bill.usd is not None and bill.usd / bill.judge_calls == pytest.approx(scores.usd / scores.calls)
