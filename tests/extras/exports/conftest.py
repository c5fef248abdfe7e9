"""Exports of a workspace with a ticket, one for each trainer, and dialogues with the rewards that RC1 pays for them."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.rewards import RewardSettings, reward_terms
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.extras.exports.package import export_for
from rc1_lib.run import Run
from rc1_lib.training.chat_format import turn_text
from tests.environment.worlds import call

Export = Callable[[str], Path]


@pytest.fixture(scope="session")
def export(opened: Run, tmp_path_factory: pytest.TempPathFactory) -> Export:
    """`export(trainer)`: the folder, written once."""
    root = tmp_path_factory.mktemp("exports")

    def folder(trainer: str) -> Path:
        if not (root / trainer).exists():
            export_for(opened, trainer, root / trainer)
        return root / trainer

    return folder


def module_of(path: Path) -> ModuleType:
    """The module in a file, as a trainer loads it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Played:
    """A dialogue that RC1 has played: its row, the turns as sampled, the messages after the prompt, the reward."""

    row: dict[str, Any]
    turns: list[str]
    messages: list[dict[str, Any]]
    malformed: bool
    reward: float

    def completion(self, as_text: bool) -> list[dict[str, Any]]:
        """The messages with parsed calls; or with the text as sampled, which a malformed turn needs."""
        if as_text or self.malformed:
            return [{"role": "assistant", "content": turn} for turn in self.turns]
        return self.messages


def _turns(place: int, row: dict[str, Any]) -> list[str]:
    """Ten ways to talk: the row's own, right, wrong, asking in vain, malformed, endless."""
    own = [turn_text(message) for message in row["messages"] if message["role"] == "assistant"]
    right, ask = f"Answer: {row['answer']}", call("ask_user", question="What do you mean?")
    none, bad = call("sing", title="x"), "<tool_call>{"
    ways = [
        own, [ask, right], [right], ["Answer: 7"], [ask, ask, ask, ask, right], [bad, right], [bad, bad],
        [none, ask, right], [call("wiki", title="Nowhere")] * 3, [call("calc", expression="1 + 1")] * 20,
    ]  # fmt: skip
    return ways[place % len(ways)]


@pytest.fixture(scope="session")
def dialogues(opened: Run, export: Export) -> list[Played]:
    """A hundred dialogues on exported rows, paid as in RC1's training without a judge."""
    rows = pl.read_parquet(export("hf") / "rows.parquet").head(100).to_dicts()
    training = opened.config.training
    settings = replace(RewardSettings.of(opened.config), judge=0.0)
    found = []
    for place, row in enumerate(rows):
        episode = Episode(World(row), Limits.of(training.limits))
        said = []
        for turn in _turns(place, row):
            if episode.status is EpisodeStatus.RUNNING:
                said.append(turn)
                episode.say(turn)
        reward = reward_terms(episode.outcome(), row["bucket"], settings).total
        spoken: list[dict[str, Any]] = json.loads(json.dumps(episode.messages[len(episode.world.prompt) :]))
        found.append(Played(row, said, spoken, bool(episode.faults), reward))
    assert len({one.reward for one in found}) > 8, "the dialogues differ too little to prove anything"
    return found
