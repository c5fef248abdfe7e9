"""The pilot: steps as the training does them, and nothing of them is left; what a live judge took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.judge_rates import judge_rates
from rc1_lib.forecast.pilot import run_pilot
from rc1_lib.run import Run
from rc1_lib.testing.judge_server import Behaviour, running
from rc1_lib.testing.judge_server.behaviour import MODEL
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.ppo_run import prepare
from tests.judge.bench import dialogues, overrides
from tests.training.weighed import weigh

Tiny = Callable[..., Run]


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
        with pytest.raises(RC1Error, match="its cost is unknown"):
            judge_rates(run)
        scores = EpisodeJudge(run).score(dialogues(3), 1)
    rates = judge_rates(run)
    assert rates.calls.value == 1.0
    assert rates.usd.value * scores.calls == pytest.approx(scores.usd)
    assert judge_rates(tiny(name="other")).usd.value == 0.0, "the rubric is paid by nobody"
