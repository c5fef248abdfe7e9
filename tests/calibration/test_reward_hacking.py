"""The attack on a real, calibrated reward: red by name today, green for a reward that knows success, replayable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.artifacts import read_json
from rc1_lib.attacks.library import ATTACKS
from rc1_lib.calibration.reward_hacking import DIALOGUES, REPORT, attack_reward, library
from rc1_lib.calibration.weights_file import read_content
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.limits import Limits
from rc1_lib.environment.world import World
from rc1_lib.errors import ConfigError
from rc1_lib.gate_report import GateReport
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL

FEW = ("gates.reward_hacking.prompts=40", "gates.reward_hacking.min_prompts=8", "gates.reward_hacking.resamples=50")


@pytest.fixture(scope="module")
def attacked(built: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, GateReport]:
    """The shipped weights under attack, in a workspace of their own."""
    import shutil

    root = tmp_path_factory.mktemp("attacked") / "workspace"
    shutil.copytree(built.workspace.root, root)
    run = open_run(profile="local", workspace=root, overrides=(*SMALL, *FEW))
    return run, attack_reward(run, read_content(run)["weights"])


def test_the_shipped_weights_pay_an_echo(attacked: tuple[Run, GateReport]) -> None:
    _, outcome = attacked
    red = {check.name for check in outcome.gate.failures}
    assert "echo: paid more than the teacher, share" in red
    assert not outcome.passed
    assert outcome.body["policies"]["echo"]["mean"] > outcome.body["policies"]["silent"]["mean"]


def test_the_report_tells_what_pays(attacked: tuple[Run, GateReport]) -> None:
    run, outcome = attacked
    paid = outcome.body["paid_by"]
    assert set(paid) == {"teacher", *ATTACKS}
    weighed = {name for name, weight in outcome.body["weights"].items() if weight}
    assert all(set(terms) == weighed for terms in paid.values())
    assert read_json(run.workspace.path(REPORT))["gate"]["name"] == "reward_hacking"


def test_what_got_through_can_be_replayed(attacked: tuple[Run, GateReport]) -> None:
    run, outcome = attacked
    limits = Limits.of(run.config.training.limits)
    rows = [orjson.loads(line) for line in run.workspace.path(DIALOGUES).read_bytes().splitlines()]
    assert len(rows) == outcome.body["dialogues"]["count"] > 0
    for row in rows[:20]:
        episode = Episode(World(row), limits)
        for message in row["messages"]:
            if message["role"] == "assistant":
                episode.send({"role": "assistant", "content": message["content"], "tool_calls": message["tool_calls"]})
        assert episode.outcome().solved is False
        assert [one["content"] for one in episode.messages] == [one["content"] for one in row["messages"]]


def test_weights_all_on_one_dimension_are_red(attacked: tuple[Run, GateReport]) -> None:
    run, _ = attacked
    outcome = attack_reward(run, {"concise": 1.0})
    assert "silent: below the teacher by" in {check.name for check in outcome.gate.failures}


def with_own(run: Run, *overrides: str) -> Run:
    return open_run(profile="local", workspace=run.workspace.root, overrides=(*run.overrides, *overrides))


def test_a_policy_of_ones_own_is_played_too(attacked: tuple[Run, GateReport], tmp_path: Path) -> None:
    run, _ = attacked
    run.workspace.path("attacks").mkdir(exist_ok=True)
    run.workspace.path("attacks/shrug.py").write_text(
        'def play(scene):\n    """Shrugs."""\n    scene.answer("who knows")\n'
    )
    assert set(library(with_own(run, "gates.reward_hacking.own=[attacks/shrug.py]"))) == {*ATTACKS, "shrug"}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("gates.reward_hacking.own=[attacks/none.py]", "there is no such Python file"),
        ("gates.reward_hacking.own=[attacks/echo.py]", "there is a policy 'echo' already"),
        (
            "gates.reward_hacking.by_name={nobody: {min_margin: 0, min_margin_part: 0, max_above: 1}}",
            "there is no policy 'nobody'",
        ),
    ],
)
def test_a_policy_that_there_is_not_is_a_sentence(
    attacked: tuple[Run, GateReport], override: str, sentence: str
) -> None:
    run: Any = attacked[0]
    run.workspace.path("attacks").mkdir(exist_ok=True)
    run.workspace.path("attacks/echo.py").write_text('def play(scene):\n    """Echoes."""\n    scene.answer("x")\n')
    with pytest.raises(ConfigError, match=sentence):
        library(with_own(run, override))
