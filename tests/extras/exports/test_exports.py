"""What is exported, that it is vouched for, and that its reward is RC1's to the last bit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from rc1_lib.errors import RC1Error, RowError, TicketError
from rc1_lib.extras.exports.columns import FORMS, training_rows
from rc1_lib.extras.exports.package import export_for
from rc1_lib.extras.exports.reward import read_settings, reward_of
from rc1_lib.preflight.ticket import read_ticket
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from rc1_lib.training.rows import is_kept_back
from tests.extras.exports.conftest import Export, Played, module_of
from tests.once import copied


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids_in(folder: Path, trainer: str) -> list[str]:
    frame = pl.read_parquet(folder / "rows.parquet")
    return (frame["extra_info"].struct.field("id") if trainer == "verl" else frame["id"]).to_list()


@pytest.mark.parametrize("trainer", FORMS)
def test_export_is_reproducible_and_its_ticket_names_every_file(
    opened: Run, export: Export, tmp_path: Path, trainer: str
) -> None:
    found = contents(export(trainer))
    export_for(opened, trainer, tmp_path / "again")
    assert contents(tmp_path / "again") == found
    document = json.loads(found.pop("rc1_ticket.json"))
    assert document["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}
    assert document["ticket"] == read_ticket(opened)
    assert b"@TURNS" not in found["README.md"]


@pytest.mark.parametrize("trainer", FORMS)
def test_training_rows_are_exported_and_nothing_held_out(opened: Run, export: Export, trainer: str) -> None:
    pool = read_rows(opened.workspace.path(opened.config.seed_pool)).to_dicts()
    spoken = [row for row in pool if row["lang"] in opened.config.training.languages]
    wanted = [row["id"] for row in spoken if not is_kept_back(row, opened.config)]  # type: ignore[arg-type]
    assert ids_in(export(trainer), trainer) == wanted
    assert 0 < len(wanted) < len(spoken) < len(pool)


def test_a_question_of_people_that_repeats_a_held_out_one_is_not_exported(built: Run, tmp_path: Path) -> None:
    run = copied(built, tmp_path / "workspace")
    path = run.workspace.path(run.config.seed_pool)
    rows = [json.loads(line) for line in path.read_text().splitlines()]

    def is_usable(row: dict[str, str]) -> bool:
        return row["task"] == "gsm8k" and row["lang"] in run.config.training.languages

    places = {is_kept_back(row, run.config): place for place, row in enumerate(rows) if is_usable(row)}
    held, own = places[True], places[False]
    rows[held]["source"] = "gsm8k"
    rows[own] = {**rows[held], **{name: rows[own][name] for name in ("id", "source_id")}}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spoken = [row for row in rows if row["lang"] in run.config.training.languages]
    wanted = [row["id"] for row in spoken if not is_kept_back(row, run.config) and row["id"] != rows[own]["id"]]
    assert [row["id"] for row in training_rows(run)] == wanted
    path.write_text("".join(json.dumps({**row, "user_replies": None}) + "\n" for row in rows))
    with pytest.raises(RC1Error, match=r"balanced\.jsonl: found no row .* rc1 build-pool"):
        training_rows(run)


def test_no_export_without_a_valid_ticket_and_none_half_written(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(opened, tmp_path / "workspace")
    target = run.workspace.path("outputs/trl")

    def full(folder: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(Path, "write_bytes", full)
        export_for(run, "trl", target)
    assert not target.exists()
    export_for(run, "trl", target)
    with pytest.raises(RC1Error, match="already exists"):
        export_for(run, "trl", target)
    pool = run.workspace.path(run.config.seed_pool)
    pool.write_bytes(pool.read_bytes().replace(b'"answer":"', b'"answer": "', 1))
    with pytest.raises(TicketError, match=r"balanced"):
        export_for(run, "trl", run.workspace.path("outputs/other"))
    assert not run.workspace.path("outputs/other").exists()


@pytest.mark.parametrize("trainer", ["trl", "hf"])
def test_reward_of_a_hundred_dialogues_is_rc1s(export: Export, dialogues: list[Played], trainer: str) -> None:
    module = module_of(export(trainer) / f"rc1_{trainer}.py")
    rows = pl.read_parquet(export(trainer) / "rows.parquet").head(100).to_dicts()
    assert [row["id"] for row in rows] == [played.row["id"] for played in dialogues]
    paid = module.rc1_reward(
        prompts=[row["messages"] if trainer == "hf" else row["prompt"] for row in rows],
        completions=[played.completion(as_text=place % 20 < 10) for place, played in enumerate(dialogues)],
        **{name: [row[name] for row in rows] for name in rows[0] if name not in ("prompt", "messages")},
    )
    assert paid == [played.reward for played in dialogues]


def test_prices_come_from_the_folder_and_what_is_missing_is_named(
    export: Export, dialogues: list[Played], tmp_path: Path
) -> None:
    settings = json.loads((export("hf") / "rc1_reward.json").read_bytes())
    solved = next(played for played in dialogues if played.reward > 0)
    turns = [{"content": turn} for turn in solved.turns]
    settings["reward"]["success"] *= 2
    rows = (export("hf") / "rows.parquet").read_bytes()
    (tmp_path / "rows.parquet").write_bytes(rows)
    (tmp_path / "rc1_reward.json").write_text(json.dumps(settings))
    assert reward_of(read_settings(tmp_path), solved.row, turns) > solved.reward
    assert reward_of(read_settings(tmp_path), solved.row, turns, cut=True) <= 0, "a cut answer earns nothing"
    (tmp_path / "rows.parquet").write_bytes(rows[:-1] + b"?")
    with pytest.raises(RC1Error, match=r"rows\.parquet"):
        read_settings(tmp_path)
    (tmp_path / "rows.parquet").write_bytes(rows)
    with pytest.raises(RowError, match="bucket"):
        reward_of(read_settings(tmp_path), {**solved.row, "bucket": "steep"}, turns)
    del settings["reward"]["turn"]
    (tmp_path / "rc1_reward.json").write_text(json.dumps(settings))
    with pytest.raises(RC1Error, match=r"rc1_reward\.json: reward: .*turn"):
        read_settings(tmp_path)
    (tmp_path / "rc1_reward.json").unlink()
    with pytest.raises(RC1Error, match=r"rc1_reward\.json"):
        read_settings(tmp_path)
