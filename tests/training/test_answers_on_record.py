"""A policy is asked once for all seeds and repeats, and nothing that lies in its record's place is believed."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import torch

from rc1_lib.evaluation import on_record
from rc1_lib.evaluation.on_record import START, OnRecord, recorded_answers
from rc1_lib.evaluation.policies import evaluate_run, player_of
from rc1_lib.run import VERDICTS
from rc1_lib.task_specs import registered, task_spec
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.play import Playground
from rc1_lib.training.player import Player
from rc1_lib.training.ppo_run import Prepared, advance, prepare
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.shares import share
from tests.training.tiny_world import tiny_run

AGAIN = 3
SHORT = (
    "steps=2", "training.segment_steps=1", "training.checkpoints.every_steps=1", "rollout_len=8",
    "training.rollout.rows=12", "gates.evaluation.resamples=20",
)  # fmt: skip
"""A checkpoint on the way, and turns of few tokens: whether an answer is another one shows in any of them."""


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
    return prepare(tiny_run(root, *SHORT))


@pytest.fixture(scope="module")
def player(prepared: Prepared) -> Iterator[Player]:
    with player_of(prepared, 1) as player:
        yield player


@pytest.fixture(scope="module")
def kept_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module", autouse=True)
def _few_again(kept_in: Path, prepared: Prepared) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VERDICTS, str(kept_in))
        patch.setattr(on_record, "ONE_IN", len(prepared.selection.held_out) // AGAIN)
        yield


@pytest.fixture(scope="module")
def recorded(
    prepared: Prepared, player: Player, kept_in: Path, _few_again: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[OnRecord, Path]:
    """What the start answers, and a folder in which nothing but that is on record. Never write into it."""
    start, _ = ask(prepared, player)
    record_in(kept_in).unlink()
    again, asked = ask(prepared, player)
    assert again == start and asked == 2 * len(prepared.selection.held_out) == 4 * 2 * AGAIN
    return start, shutil.copytree(kept_in, tmp_path_factory.mktemp("recorded") / "own")


@pytest.fixture
def first(recorded: tuple[OnRecord, Path], kept_in: Path) -> OnRecord:
    """What the start answers, and nothing but that is on record, whatever the test before has left."""
    start, own = recorded
    shutil.rmtree(kept_in)
    shutil.copytree(own, kept_in)
    return start


def ask(prepared: Prepared, player: Player, policy: str = START, **how: Any) -> tuple[OnRecord, int]:
    """A policy's answers, and how many prompts were asked for them."""
    counting = Counting(player)
    rows = prepared.selection.held_out
    return recorded_answers(prepared, cast(Player, counting), policy, rows, **how), counting.asked


def record_in(folder: Path) -> Path:
    """The only record."""
    (record,) = folder.rglob("*.answers")
    return record


def test_it_is_asked_once_for_all_seeds(prepared: Prepared, player: Player, first: OnRecord) -> None:
    assert ask(prepared, player) == (first, 2 * AGAIN)
    with player_of(prepared, 2) as other:
        assert ask(prepared, other) == (first, 2 * AGAIN)


def test_another_policy_is_asked_and_has_a_record_of_its_own(
    prepared: Prepared, player: Player, first: OnRecord
) -> None:
    assert ask(prepared, player, "a checkpoint")[1] == len(first.answers) * len(prepared.selection.held_out)
    assert ask(prepared, player, "a checkpoint")[1] == 2 * AGAIN
    assert ask(prepared, player)[1] == 2 * AGAIN


def test_one_mode_has_a_record_of_its_own(prepared: Prepared, player: Player, first: OnRecord) -> None:
    sampled, asked = ask(prepared, player, modes=("sampled",))
    assert asked == len(prepared.selection.held_out)
    assert sampled.answers == {"sampled": first.answers["sampled"]}
    assert ask(prepared, player, modes=("sampled",)) == (sampled, AGAIN)


def test_of_other_prompts_it_is_asked_anew(prepared: Prepared, player: Player, first: OnRecord) -> None:
    fewer = replace(prepared, selection=replace(prepared.selection, held_out=prepared.selection.held_out[1:]))
    start, asked = ask(fewer, player)
    assert asked == 2 * len(fewer.selection.held_out)
    assert start.answers["greedy"] == first.answers["greedy"][1:]


def test_whoever_watches_is_told_what_is_done(
    prepared: Prepared, player: Player, first: OnRecord, kept_in: Path
) -> None:
    def notes(policy: str) -> list[str]:
        told = list[tuple[int, str]]()
        ask(prepared, player, policy, watch=lambda answered, note: told.append((answered, note)))
        assert told[-1][0] == 2
        return [note for _, note in told if note]

    assert notes(START) == ["the answers are on record"]
    assert notes("another") == []
    for record in kept_in.rglob("*.answers"):
        record.write_bytes(b"no record")
    assert notes(START) == ["every prompt is asked: what is on record is damaged, or of other prompts"]


def test_records_of_long_ago_go(
    prepared: Prepared, player: Player, first: OnRecord, kept_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_record, "_MOST", 2)
    verdict = record_in(kept_in).with_name("a verdict.json")
    verdict.touch()
    for policy in "abc":
        ask(prepared, player, policy)
    assert len(list(kept_in.rglob("*.answers"))) == 2 and verdict.exists()
    assert ask(prepared, player, "c")[1] == 2 * AGAIN
    assert ask(prepared, player)[1] == 2 * len(prepared.selection.held_out)


def test_an_evaluation_once_more_asks_few_and_finds_the_same(
    prepared: Prepared, first: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of start and trained policy in both modes, and of the checkpoint on the way."""
    asked = list[int]()
    play = Playground.play

    def counting(self: Playground, model: Any, rows: Any, keys: Any, **how: Any) -> list[Trajectory]:
        asked.append(len(rows))
        return play(self, model, rows, keys, **how)

    seed = prepared.run.config.seeds[0]
    finished = {seed: fingerprint(advance(prepared, seed, prepared.run.config.steps, lambda _: None))}
    monkeypatch.setattr(Playground, "play", counting)
    found = evaluate_run(prepared, finished)
    prompts, on_the_way = len(prepared.selection.held_out), prepared.run.config.training.held_out.between.prompts
    of_once = [AGAIN] * 2 + [prompts] * 2 + [min(on_the_way, prompts)]
    assert asked == of_once
    del asked[:]
    again = evaluate_run(prepared, finished)
    assert asked == [AGAIN] * 5
    assert again.report == found.report  # named by provenance and every figure


@pytest.mark.parametrize("where", ["", "in the workspace"])
def test_what_lies_in_the_workspace_is_not_believed(
    prepared: Prepared, player: Player, first: OnRecord, kept_in: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Whoever can merely write there writes a record whose prompts answer as it says, but for a few."""
    inside = prepared.run.workspace.root / "own"
    shutil.copytree(kept_in, inside)
    monkeypatch.setenv(VERDICTS, where and str(inside))
    assert ask(prepared, player) == (first, 2 * len(prepared.selection.held_out))
    assert ask(prepared, player) == (first, 2 * len(prepared.selection.held_out))
    shutil.rmtree(inside)


def test_beside_a_task_whose_source_no_fingerprint_covers_nothing_is_kept_or_believed(
    prepared: Prepared, player: Player, first: OnRecord, kept_in: Path
) -> None:
    with registered(replace(task_spec("gsm8k"), name="mine")):
        assert ask(prepared, player) == (first, 2 * len(prepared.selection.held_out))
        record_in(kept_in).unlink()
        ask(prepared, player)
        assert not list(kept_in.rglob("*.answers"))


def changed(record: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    lines = [orjson.loads(line) for line in zlib.decompress(record.read_bytes()).splitlines()]
    change(lines)
    written = b"".join(orjson.dumps(line, option=orjson.OPT_SORT_KEYS) + b"\n" for line in lines)
    record.write_bytes(zlib.compress(written))


def nothing_solved(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        line["played"]["outcome"]["right"] = not line["played"]["outcome"]["right"]


def flipped(record: Path) -> None:
    content = bytearray(record.read_bytes())
    content[len(content) // 2] ^= 1
    record.write_bytes(bytes(content))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a byte": flipped,
    "cut short": lambda record: record.write_bytes(record.read_bytes()[:-100]),
    "no record": lambda record: record.unlink(),
    "empty": lambda record: record.write_bytes(b""),
    "open to others": lambda record: record.parent.chmod(0o770),
}
FALSEHOODS: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "a start that is easily surpassed": nothing_solved,
    "episodes are missing": lambda lines: lines.pop(),
    "an episode twice": lambda lines: lines.append(lines[0]),
    "another order": lambda lines: lines.reverse(),
    "another type": lambda lines: lines[0]["played"]["outcome"].update(asked="0"),
    "an unknown end": lambda lines: lines[0]["played"]["outcome"].update(status="won"),
    "a key too few": lambda lines: lines[0]["played"].pop("messages"),
}


@pytest.mark.parametrize("kind", share(DAMAGES, "a byte", "no record", "open to others"))
def test_a_damaged_record_is_not_believed(
    prepared: Prepared, player: Player, first: OnRecord, kept_in: Path, kind: str
) -> None:
    folder = record_in(kept_in).parent
    DAMAGES[kind](record_in(kept_in))
    assert ask(prepared, player) == (first, 2 * len(prepared.selection.held_out))
    folder.chmod(0o700)
    ask(prepared, player)
    assert ask(prepared, player) == (first, 2 * AGAIN)


@pytest.mark.parametrize("kind", FALSEHOODS)
def test_a_record_of_other_answers_is_void(
    prepared: Prepared, player: Player, first: OnRecord, kept_in: Path, kind: str
) -> None:
    """Of the machine that made it, say: it is whole, and the policy answers otherwise here."""
    changed(record_in(kept_in), FALSEHOODS[kind])
    start, asked = ask(prepared, player)
    assert start == first
    assert asked >= 2 * len(prepared.selection.held_out)
    assert ask(prepared, player) == (first, 2 * AGAIN)
