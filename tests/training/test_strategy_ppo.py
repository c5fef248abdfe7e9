"""The strategy `ppo`: it turns rows into episodes with scores and metrics."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest

from rc1_lib.config.step_metrics import OF_STRATEGIES, REWARD_TERMS
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training import episode_judge
from rc1_lib.training.api import Setup, make_strategy
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.strategies import PPO
from tests.judge.bench import overrides
from tests.judge_server import Behaviour, FaultKind, running
from tests.judge_server.behaviour import MODEL
from tests.training.toys import Scale
from tests.training.weighed import weigh

Tiny = Callable[..., Run]


def played(run: Run, judge: EpisodeJudge | None = None) -> tuple[TorchPPO, dict[str, Any], dict[str, float]]:
    """Engine, batch with its episodes, and metrics."""
    engine = TorchPPO()
    base = str(run.workspace.path(run.config.base_model))
    engine.setup(Setup.of_run(run.config, base, 5))
    rows = prepare(run).selection.train
    batch = Curriculum(rows, run.config.priority_sampling, run.config.batch_size, 5).next()
    strategy = PPO(judge)
    strategy.attach_engine(engine)
    return engine, batch, strategy.on_batch(batch)


def test_batch_gets_an_episode_and_a_score_for_every_row(tiny: Tiny) -> None:
    engine, batch, _ = played(tiny())
    assert [each.row_id for each in batch["trajectories"]] == [row["id"] for row in batch["rows"]]
    rewards = [
        engine.playground.terms(each, row).total for each, row in zip(batch["trajectories"], batch["rows"], strict=True)
    ]
    assert batch["scores"] == rewards
    assert batch["solved"] == [each.outcome.solved for each in batch["trajectories"]]
    assert batch["kinds"] == [f"{row['task']}, {row['needs_clarification']}" for row in batch["rows"]]


def test_reward_terms_add_up_to_the_mean_score(tiny: Tiny) -> None:
    _, batch, metrics = played(tiny("difficulty_beta=0"))
    gains, costs = ("success", "judge"), ("penalty", "format", "turns")
    total = sum(metrics[f"reward/{name}"] for name in gains) - sum(metrics[f"reward/{name}"] for name in costs)
    assert metrics["reward/factor"] == 1 and metrics.keys() >= REWARD_TERMS
    assert metrics.keys() <= OF_STRATEGIES["ppo"] == OF_STRATEGIES["groups"]
    assert total == pytest.approx(fmean(batch["scores"]))


def test_episodes_with_missing_scores_are_not_trained_on(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_judge, "MIN_SCORED", 0.1)
    with running(Behaviour(delay="zero", faults={FaultKind.REFUSAL: 0.1})) as refusing:
        run = tiny(
            "training.reward.judge=1", "training.reward.success=0",
            "batch_size=24",
            *overrides(refusing.base_url),
        )  # fmt: skip
        weigh(run, dict(run.config.reward.old_weights), [MODEL])
        engine, batch, metrics = played(run, EpisodeJudge(run))
    assert 0 < len(batch["trajectories"]) < 24
    assert metrics["judge/scored"] == len(batch["trajectories"]) / 24
    assert len(batch["scores"]) == len(batch["kinds"]) == len(batch["trajectories"])
    assert len(batch["solved"]) == 24  # the curriculum needs every row
    rows = {row["id"] for row in batch["rows"]}
    assert {each.row_id for each in batch["trajectories"]} <= rows
    assert engine.train_step(batch)["objective/scores"] == pytest.approx(fmean(batch["scores"]))


@pytest.mark.parametrize(("name", "settings"), [("ppo", {}), ("groups", {"group_size": 2})])
def test_engine_without_a_policy_is_rejected(name: str, settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=rf"training\.strategy: .*'{name}', .* Scale .*engine\.PolicyEngine"):
        make_strategy(name, **settings).attach_engine(Scale())
