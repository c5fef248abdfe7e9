"""An exported world: its bytes, what it rejects, and that edited rows are not served."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.environment.episode import Episode
from rc1_lib.errors import RC1Error
from rc1_lib.extras.worlds.package import export_world
from rc1_lib.extras.worlds.served import ServedWorld, opened, paid, reference_turns, replayed
from rc1_lib.extras.worlds.spec import Part, WorldSpec
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from tests.environment.worlds import call
from tests.extras.worlds.small import ROWS, pool_of, record, small_run, turns_of


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "workspace")


@pytest.fixture
def world(run: Run, tmp_path: Path) -> Path:
    export_world(run, pool_of(run), tmp_path / "world", Part.ALL)
    return tmp_path / "world"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_export_is_reproducible(run: Run, world: Path, tmp_path: Path) -> None:
    export_world(run, pool_of(run), tmp_path / "again", Part.ALL)
    assert contents(world) == contents(tmp_path / "again")
    assert {"openenv.yaml", "rows.jsonl", "server/app.py", "pyproject.toml", "validation/runtime.json"} < set(
        contents(world)
    )


def test_reference_asks_only_if_needed_and_a_truncated_turn_is_not_an_answer(world: Path) -> None:
    served = ServedWorld.read(world)
    rows = [served.row(place) for place in range(3)]
    found = [replayed(served.spec, row, reference_turns(row))[0].outcome() for row in rows]
    assert [(outcome.asked, outcome.solved) for outcome in found] == [(0, True), (1, True), (1, True)]
    cut = replayed(served.spec, rows[0], reference_turns(rows[0]), cut=True)[0].outcome()
    assert (cut.status, cut.solved) == ("max_tokens", False)


def test_rewards_stay_within_the_declared_range(run: Run, world: Path) -> None:
    spec = WorldSpec.read(world)
    row = ServedWorld.read(world).row_of("pool-gsm8k-2")
    low, high = spec.reward_range()
    worst = opened(spec, row)
    for _ in range(3):
        worst.say(call("ask_user", question="Which one?"))
    while worst.status == "running":
        worst.say("<tool_call>" if len(worst.faults) < spec.limits.malformed else call("calc", expression="1 + 1"))
    assert low <= paid(spec, row, worst).total < -0.8
    best: Episode = opened(spec, row)
    best.say("Answer: 384")
    assert paid(spec, {**row, "bucket": "hard"}, best).total <= high < 0.7


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (lambda text: text.replace('"source_id": "c", ', ""), r"line 2: .* source_id; "),
        (lambda text: text.replace('"otherwise"', '"other"'), r"rows\.jsonl: .*played"),
        (lambda text: text[:-20], r"line 3: .*JSON"),
    ],
)
def test_invalid_rows_are_rejected_with_their_place(
    run: Run, tmp_path: Path, edit: Callable[[str], str], error: str
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(edit(pool_of(run).read_text()))
    with pytest.raises(RC1Error, match=error):
        export_world(run, rows, tmp_path / "world", Part.ALL)
    assert not (tmp_path / "world").exists()


def test_part_contains_only_training_or_evaluation_questions(run: Run, tmp_path: Path) -> None:
    ids = {}
    for part in Part:
        document = export_world(run, pool_of(run), tmp_path / part, part)
        assert document["rc1"]["rows"]["part"] == part
        ids[part.value] = list(ServedWorld.read(tmp_path / part).place)
    assert ids["all"] == [row["id"] for row in ROWS]
    assert (ids["training"], ids["evaluation"]) == (["pool-gsm8k-2", "pool-gsm8k-1"], ["pool-hotpotqa-1"])
    none = small_run(run.workspace.root, "training.held_out.share=0.1")
    with pytest.raises(RC1Error, match=r"balanced\.jsonl: .*'evaluation'"):
        export_world(none, pool_of(none), tmp_path / "none", Part.EVALUATION)


def test_training_part_is_what_training_may_learn_from(run: Run, tmp_path: Path) -> None:
    """No row in another language than its own, and no question of people that repeats a held-out one."""
    public = "".join(json.dumps({**row, "source": "gsm8k"}) + "\n" for row in ROWS)
    record(run, public.replace('"source": "gsm8k", "source_id": "b"', '"source": "embedded", "source_id": "b"'))
    export_world(run, pool_of(run), tmp_path / "unlike", Part.TRAINING)
    assert list(ServedWorld.read(tmp_path / "unlike").place) == ["pool-gsm8k-2"], "the second repeats the third"
    record(run, "".join(json.dumps(row) + "\n" for row in ROWS).replace('"lang": "en"', '"lang": "zh"', 1))
    export_world(run, pool_of(run), tmp_path / "spoken", Part.TRAINING)
    assert list(ServedWorld.read(tmp_path / "spoken").place) == ["pool-gsm8k-1"]


def test_edited_rows_are_not_served(world: Path) -> None:
    rows = world / "rows.jsonl"
    rows.write_bytes(rows.read_bytes().replace(b'"answer":"384"', b'"answer":"385"', 1))
    with pytest.raises(RC1Error, match=r"rows\.jsonl: .*SHA-256 .* rc1 world export"):
        ServedWorld.read(world)


def test_every_row_of_a_built_pool_is_served(built: Run, tmp_path: Path) -> None:
    document = export_world(built, built.workspace.path(built.config.seed_pool), tmp_path / "world", Part.ALL)
    served = ServedWorld.read(tmp_path / "world")
    pool = read_rows(built.workspace.path(built.config.seed_pool))
    assert len(served.lines) == document["rc1"]["rows"]["count"] == pool.height
    low, high = served.spec.reward_range()
    found = [
        (row["id"], replayed(served.spec, row, turns_of(dict(row))))
        for row in map(served.row, range(0, pool.height, 25))
    ]
    assert all(low <= terms.total <= high for _, (_, terms) in found)
    solved = dict(pool.select("id", "solved").iter_rows())
    assert [episode.outcome().solved for _, (episode, _) in found] == [solved[name] for name, _ in found]
    assert all(
        replayed(served.spec, row, reference_turns(row))[0].outcome().solved
        for row in map(served.row, range(pool.height))
    )
