"""The command that comes next: typed as it stands, on the same run, however many settings that has."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest

from rc1_lib.cli import endings
from rc1_lib.cli.endings import after_preflight, after_training, again, flagged, then
from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session
from rc1_lib.run import EFFECTIVE

MANY = ("pool.n=600", "shadow.n=40", "gates.waivers={judge_agreement: no labels yet}")


def opened(root: Path, *settings: str, **more: object) -> Session:
    session = Session(Options(root, None, None, settings, False, **more), io.StringIO())  # type: ignore[arg-type]
    session.open()
    return session


def words(line: str) -> list[str]:
    return shlex.split(line[line.index("rc1 ") :])


def test_many_settings_are_named_by_the_file_that_records_them(tmp_path: Path) -> None:
    session = opened(tmp_path, *MANY)
    assert words(then(session, "train"))[4:] == [word for one in MANY for word in ("--set", one)], "not recorded yet"
    assert session.run is not None
    session.run.write_effective_config()
    recorded = str(tmp_path / EFFECTIVE)
    assert words(then(session, "train")) == ["rc1", "train", "--config", recorded, "--workspace", str(tmp_path)]
    other = opened(tmp_path, *MANY[:2], "steps=20")
    assert words(then(other, "train"))[4:] == [word for one in other.overrides for word in ("--set", one)]
    few = opened(tmp_path, *MANY[:2])
    assert words(then(few, "train"))[4:] == ["--set", MANY[0], "--set", MANY[1]]


def test_the_recorded_file_is_named_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(tmp_path, *MANY)
    assert session.run is not None
    session.run.write_effective_config()
    monkeypatch.chdir(tmp_path)
    assert f" --config {EFFECTIVE} " in then(session, "train")
    reopened = Session(Options(tmp_path, Path(EFFECTIVE), None, (), False), io.StringIO())
    assert reopened.open() == session.run
    assert words(then(reopened, "train"))[2:4] == ["--config", EFFECTIVE]


def test_a_reward_and_sources_are_shown_by_their_own_flags(tmp_path: Path) -> None:
    session = opened(tmp_path, "pool.n=600", sources="embedded", reward="verified")
    shown = ["--set", "pool.n=600", "--reward", "verified", "--sources", "embedded"]
    assert words(then(session, "train"))[4:] == shown


def test_what_a_flag_asked_of_the_gates_holds_for_the_same_command_alone(tmp_path: Path) -> None:
    session = Session(Options(tmp_path, None, None, (), False), io.StringIO())
    session.open(["pool.seed=3", "gates.length.min_len=9"])
    place = ["--workspace", str(tmp_path)]
    assert words(then(session, "preflight")) == ["rc1", "preflight", *place, "--set", "pool.seed=3"]
    assert words(again(session, "validate-pool", *flagged({"": "a b.jsonl", "--task": None}))) == [
        "rc1", "validate-pool", "a b.jsonl", *place, "--set", "pool.seed=3", "--set", "gates.length.min_len=9",
    ]  # fmt: skip


def test_where_nothing_can_be_trained_a_preflight_elsewhere_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(Options(tmp_path, None, None, (), False), io.StringIO())
    session.open()
    monkeypatch.setattr(endings, "lacking_for_training", lambda: ("torch",))
    line = after_preflight(session, [1, 2], passed=True)
    assert line == f"next, where the extra train is installed: rc1 preflight --workspace {tmp_path}"


def test_the_next_command_is_typed_as_it_stands(tmp_path: Path) -> None:
    """Workspace, profile and settings are this run's: another configuration would be another run."""
    setting = "gates.waivers={judge_agreement: no labels yet}"  # which a shell would tear apart
    session = Session(Options(tmp_path, None, "local", (setting,), False), io.StringIO())
    run = session.open(['sources.use="embedded"'])

    shared = [
        "--profile", "local", "--workspace", str(run.workspace.root),
        "--set", "gates.waivers={judge_agreement: no labels yet}", "--set", 'sources.use="embedded"',
    ]  # fmt: skip
    one, seeds = run.config.seeds[:1], run.config.seeds
    assert words(after_preflight(session, [1, 2], passed=True)) == ["rc1", "train", *shared]
    assert words(after_preflight(session, [1, 2], passed=False)) == ["rc1", "preflight", *shared]
    assert words(after_preflight(session, [1], passed=True)) == ["rc1", "round2", *shared]
    assert words(after_preflight(session, [2], passed=False)) == ["rc1", "round2", *shared]
    assert words(after_training(session, run, one, evaluate=True, passed=False)) == ["rc1", "preflight", *shared]
    assert words(after_training(session, run, one, evaluate=True, passed=True)) == [
        "rc1", "train", "--all-seeds", *shared,
    ]  # fmt: skip
    assert words(after_training(session, run, seeds, evaluate=True, passed=True)) == ["rc1", "release", *shared]
    assert words(after_training(session, run, one, evaluate=False, passed=True)) == [
        "rc1", "train", "--seed", str(one[0]), *shared,
    ]  # fmt: skip
