"""Episodes scored by the calibrated weights: what a score is, what unscored and unstable ones are, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean

import polars as pl
import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.preflight.judged_rows import judge_rows
from rc1_lib.run import Run
from rc1_lib.scoring.judge import open_judge, open_store
from rc1_lib.testing.judge_server import Behaviour, FaultKind, JudgeServer, running
from rc1_lib.testing.judge_server.behaviour import MODEL
from rc1_lib.training.episode_judge import EpisodeJudge
from tests.scoring.bench import dialogues, overrides
from tests.training.weighed import WEIGHTS, weigh

Tiny = Callable[..., Run]
OWN_STORE = "data/judge/training.sqlite"
OF_JUDGE = {"answered": 0.5, "grounded": 0.3, "restrained": 0.2}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with running(Behaviour(delay="zero")) as server:
        yield server


def live(tiny: Tiny, server: JudgeServer, *more: str) -> Run:
    """A run that a live judge scores episodes of."""
    run = tiny("training.reward.judge=1", "training.reward.success=0", *overrides(server.base_url), *more)
    return weigh(run, OF_JUDGE, [MODEL])


# ---- what a score is ----


def test_scores_are_the_weighted_sums_that_the_preflight_calibrates(tiny: Tiny, pool: list[dict[str, object]]) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    frame = judge_rows(run, pl.DataFrame(pool[:40])).frame
    expected = [math.fsum(weight * row[name] for name, weight in WEIGHTS.items()) for row in frame.to_dicts()]
    found = EpisodeJudge(run).score([row["messages"] for row in pool[:40]])
    assert found.values == pytest.approx(expected)
    assert len(set(found.values)) > 3 and all(value is not None and 0 <= value <= 1 for value in found.values)
    assert (found.unstable, found.metrics()) == (0, {"judge/scored": 1.0, "judge/unstable": 0.0})


def test_the_replies_are_kept_beside_those_of_the_preflight(tiny: Tiny) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    EpisodeJudge(run).score(dialogues(3))
    assert run.workspace.path(OWN_STORE).is_file()
    assert not run.workspace.path(run.config.judge.store.path).exists()


def test_what_was_scored_once_is_scored_alike_and_costs_nothing(tiny: Tiny, server: JudgeServer) -> None:
    run = live(tiny, server)
    first = EpisodeJudge(run).score(dialogues(4))
    asked = server.stats().requests
    assert asked == 4 * run.config.judge.samples
    assert EpisodeJudge(run).score(dialogues(4)) == first
    assert server.stats().requests == asked


# ---- unscored and unstable ----


def test_unscored_episodes_have_no_number(tiny: Tiny) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.REFUSAL: 0.1})) as refusing:
        run = live(tiny, refusing, "gates.stability.min_coverage=0.1", "training.ppo.minibatches=1")
        found = EpisodeJudge(run).score(dialogues(30))
    unscored = [value for value in found.values if value is None]
    assert 0 < len(unscored) < 30
    assert found.metrics()["judge/scored"] == 1 - len(unscored) / 30
    assert all(value is None or value > 0.2 for value in found.values)


def test_too_few_scored_episodes_end_the_training(tiny: Tiny) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.REFUSAL: 1.0})) as refusing:
        judge = EpisodeJudge(live(tiny, refusing))
        with pytest.raises(RC1Error, match=r"scored 0 of 5 episodes of this step, and an update needs at least 2 \(tr"):
            judge.score(dialogues(5))


def test_a_judge_that_stops_ends_the_training(tiny: Tiny, server: JudgeServer) -> None:
    judge = EpisodeJudge(live(tiny, server, "judge.budget.max_calls=12", "steps=1", "batch_size=4"))
    judge.score(dialogues(3))
    with pytest.raises(RC1Error, match=r"the judge stopped: judge\.budget\.max_calls \(12\) is used up"):
        judge.score(dialogues(2, 3))


def test_an_unstable_score_is_drawn_to_the_mean_of_the_stable_ones(tiny: Tiny, server: JudgeServer) -> None:
    run = live(tiny, server, "reward.unstable_weight=0.25", "gates.stability.max_variance=0.0006")
    found = EpisodeJudge(run).score(dialogues(12))
    reading = live(tiny, server, "gates.stability.max_variance=0.0006", f"judge.store.path={OWN_STORE}")
    with open_store(reading) as store:
        rows = open_judge(reading, store).score(dialogues(12)).rows.to_dicts()
    plain = [math.fsum(weight * row[name] for name, weight in OF_JUDGE.items()) for row in rows]
    shaky = [row["unstable"] for row in rows]
    assert 0 < sum(shaky) < 12
    centre = fmean(value for value, unstable in zip(plain, shaky, strict=True) if not unstable)
    expected = [
        centre + 0.25 * (value - centre) if unstable else value for value, unstable in zip(plain, shaky, strict=True)
    ]
    assert found.values == pytest.approx(expected)
    assert found.unstable == sum(shaky)


# ---- what is refused, before anybody is asked ----


def test_without_weights_there_is_no_judge(tiny: Tiny) -> None:
    with pytest.raises(RC1Error, match=r"weights\.json: there are no weights yet; rc1 weight-calib finds them"):
        EpisodeJudge(tiny("training.reward.judge=1"))


def test_a_budget_that_ends_in_the_middle_is_refused(tiny: Tiny) -> None:
    run = weigh(tiny("training.reward.judge=1", "judge.budget.max_calls=95", "steps=4", "batch_size=8"))
    with pytest.raises(ConfigError, match=r"max_calls is 95, but a seed's training may have to ask 96 times \(steps"):
        EpisodeJudge(run)
    assert EpisodeJudge(tiny("training.reward.judge=1", "judge.budget.max_calls=96", "steps=4", "batch_size=8"))


def test_weights_that_somebody_edited_are_refused(tiny: Tiny) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    path = run.workspace.path(run.config.weights)
    path.write_text(path.read_text().replace("0.25", "0.2").replace("0.15", "0.2"))
    with pytest.raises(RC1Error, match="somebody else wrote these weights"):
        EpisodeJudge(run)


def test_weights_whose_report_is_lost_are_refused(tiny: Tiny) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    run.workspace.path("reports/calibration_report_test.json").unlink()
    with pytest.raises(RC1Error, match="names no report that says which version of the judge"):
        EpisodeJudge(run)


def test_a_live_judge_without_a_model_is_refused(tiny: Tiny, server: JudgeServer) -> None:
    run = weigh(tiny("training.reward.judge=1", *overrides(server.base_url), "judge.model=null"), OF_JUDGE, [MODEL])
    with pytest.raises(ConfigError, match=r"judge\.model"):
        EpisodeJudge(run)


def test_another_version_of_the_judge_is_not_on_the_scale_of_the_weights(tiny: Tiny, server: JudgeServer) -> None:
    judge = EpisodeJudge(weigh(live(tiny, server), OF_JUDGE, ["rc1-test-double-0"]))
    with pytest.raises(RC1Error, match=f"answers as {MODEL}, but the weights were calibrated on .* rc1-test-double-0"):
        judge.score(dialogues(2))


# ---- what makes another run ----


def test_weights_and_judge_decide_the_fingerprint(tiny: Tiny) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    first = EpisodeJudge(run).sha256
    assert EpisodeJudge(run).sha256 == first
    assert EpisodeJudge(tiny("training.reward.judge=1", "judge.samples=5")).sha256 != first
    assert EpisodeJudge(tiny("training.reward.judge=1", "reward.unstable_weight=0.9")).sha256 != first
    assert EpisodeJudge(weigh(run, OF_JUDGE)).sha256 != first
