"""The start is asked once for all seeds and repeats, and nothing that lies in its record's place is believed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import torch

from rc1_lib.artifacts import write_json
from rc1_lib.evaluation import start_record
from rc1_lib.evaluation.policies import player_of
from rc1_lib.evaluation.start_record import FOLDER, Start, start_of
from rc1_lib.training.player import Player
from rc1_lib.training.ppo_run import Prepared, prepare
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.shares import share
from tests.training.tiny_world import tiny_run

AGAIN = 3


class Counting:
    """A player that counts the prompts it is asked."""

    def __init__(self, player: Player) -> None:
        self.player, self.temperature, self.asked = player, player.temperature, 0

    def play(self, rows: Any, keys: Any, **how: Any) -> list[Trajectory]:
        self.asked += len(rows)
        return self.player.play(rows, keys, **how)


@pytest.fixture(scope="module")
def prepared(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    root = tmp_path_factory.mktemp("start") / "workspace"
    shutil.copytree(tiny_workspace, root)
    torch.set_num_threads(1)
    return prepare(tiny_run(root))


@pytest.fixture(scope="module")
def player(prepared: Prepared) -> Iterator[Player]:
    with player_of(prepared, 1) as player:
        yield player


@pytest.fixture(scope="module")
def first(prepared: Prepared, player: Player) -> Start:
    """What the start answers when nothing is on record."""
    shutil.rmtree(prepared.run.workspace.path(FOLDER), ignore_errors=True)
    start, asked = ask(prepared, player)
    assert asked == 2 * len(prepared.selection.held_out) > 4 * AGAIN
    return start


@pytest.fixture(autouse=True)
def _few_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_record, "ASKED_AGAIN", AGAIN)


def ask(prepared: Prepared, player: Player) -> tuple[Start, int]:
    """The start's answers, and how many prompts were asked for them."""
    counting = Counting(player)
    return start_of(prepared, cast(Player, counting), 4), counting.asked


def record_of(prepared: Prepared) -> tuple[Path, Path]:
    """The only record's two files: what it says, and the episodes."""
    folder = prepared.run.workspace.path(FOLDER)
    (record,), (episodes,) = folder.glob("*.json"), folder.glob("*.jsonl")
    return record, episodes


def test_it_is_asked_once_for_all_seeds(prepared: Prepared, player: Player, first: Start) -> None:
    assert ask(prepared, player) == (first, 2 * AGAIN)
    with player_of(prepared, 2) as other:
        assert ask(prepared, other) == (first, 2 * AGAIN)


def test_of_other_prompts_it_is_asked_anew(prepared: Prepared, player: Player, first: Start) -> None:
    before = set(prepared.run.workspace.path(FOLDER).iterdir())
    fewer = replace(prepared, selection=replace(prepared.selection, held_out=prepared.selection.held_out[1:]))
    start, asked = ask(fewer, player)
    assert asked == 2 * len(fewer.selection.held_out)
    assert start.answers["greedy"] == first.answers["greedy"][1:]
    for path in set(prepared.run.workspace.path(FOLDER).iterdir()) - before:
        path.unlink()


def changed(episodes: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    lines = [orjson.loads(line) for line in episodes.read_bytes().splitlines()]
    change(lines)
    episodes.write_bytes(b"".join(orjson.dumps(line, option=orjson.OPT_SORT_KEYS) + b"\n" for line in lines))


def nothing_solved(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        line["played"]["outcome"]["right"] = not line["played"]["outcome"]["right"]


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "a byte": lambda record, episodes: episodes.write_bytes(episodes.read_bytes().replace(b"true", b"tru3", 1)),
    "cut short": lambda record, episodes: episodes.write_bytes(episodes.read_bytes()[:-100]),
    "no episodes": lambda record, episodes: episodes.unlink(),
    "no record": lambda record, episodes: record.unlink(),
    "no JSON": lambda record, episodes: record.write_text("{"),
    "another record": lambda record, episodes: record.write_text("[]"),
}
FORGERIES: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "a start that is easily surpassed": nothing_solved,
    "episodes are missing": lambda lines: lines.pop(),
    "an episode twice": lambda lines: lines.append(lines[0]),
    "another order": lambda lines: lines.reverse(),
    "another type": lambda lines: lines[0]["played"]["outcome"].update(asked="0"),
    "an unknown end": lambda lines: lines[0]["played"]["outcome"].update(status="won"),
    "a key too few": lambda lines: lines[0]["played"].pop("messages"),
}


@pytest.mark.parametrize("kind", share(DAMAGES, "a byte", "no record", "another record"))
def test_a_damaged_record_is_not_believed(prepared: Prepared, player: Player, first: Start, kind: str) -> None:
    record, episodes = record_of(prepared)
    DAMAGES[kind](record, episodes)
    assert ask(prepared, player) == (first, 2 * len(prepared.selection.held_out))
    assert ask(prepared, player) == (first, 2 * AGAIN)


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_record_that_was_made_up_whole_is_void(prepared: Prepared, player: Player, first: Start, kind: str) -> None:
    """Its episodes are those that it names."""
    record, episodes = record_of(prepared)
    changed(episodes, FORGERIES[kind])
    write_json(record, {"sha256": hashlib.sha256(episodes.read_bytes()).hexdigest()})
    start, asked = ask(prepared, player)
    assert start == first
    assert asked >= 2 * len(prepared.selection.held_out)
