"""The plan that a long command prints first, and the next command, which can be typed for the same run."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest

from rc1_lib.cli.endings import again, flagged, then
from rc1_lib.cli.flows import preflight_outline, training_outline
from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session
from rc1_lib.errors import ConfigError
from rc1_lib.run import EFFECTIVE

from .conftest import NARROW, Rc1, settings

MANY = ("pool.n=600", "shadow.n=40", "gates.waivers={judge_agreement: no labels yet}")


def opened(root: Path, *overrides: str, **more: object) -> Session:
    session = Session(Options(root, overrides=list(overrides), **more), io.StringIO())  # type: ignore[arg-type]
    session.open()
    return session


def words(line: str) -> list[str]:
    return shlex.split(line[line.index("rc1 ") :])


def test_next_command_names_the_recorded_file_when_there_are_many_settings(tmp_path: Path) -> None:
    session = opened(tmp_path, *MANY)
    assert words(then(session, "train"))[4:] == settings(MANY), "not recorded yet"
    assert session.run is not None
    session.run.write_effective_config()
    recorded = str(tmp_path / EFFECTIVE)
    assert words(then(session, "train")) == ["rc1", "train", "--config", recorded, "--workspace", str(tmp_path)]
    other = opened(tmp_path, *MANY[:2], "steps=20")
    assert words(then(other, "train"))[4:] == settings(other.overrides)
    few = opened(tmp_path, *MANY[:2])
    assert words(then(few, "train"))[4:] == ["--set", MANY[0], "--set", MANY[1]]


def test_gate_thresholds_given_as_flags_are_repeated_only_for_the_same_command(tmp_path: Path) -> None:
    session = Session(Options(tmp_path), io.StringIO())
    session.open({"pool.seed": 3, "gates.length.min_len": 9})
    place = ["--workspace", str(tmp_path)]
    assert words(then(session, "preflight")) == ["rc1", "preflight", *place, "--set", "pool.seed=3"]
    assert words(again(session, "validate-pool", *flagged({"": "a b.jsonl", "--task": None}))) == [
        "rc1", "validate-pool", "a b.jsonl", *place, "--set", "pool.seed=3", "--set", "gates.length.min_len=9",
    ]  # fmt: skip


def test_next_command_repeats_workspace_profile_and_settings(tmp_path: Path) -> None:
    """Another configuration would be another run."""
    setting = "gates.waivers={judge_agreement: no labels yet}"  # needs quoting in a shell
    session = Session(Options(tmp_path, None, "local", [setting]), io.StringIO())
    run = session.open({"sources.use": "embedded"})

    shared = [
        "--profile", "local", "--workspace", str(run.workspace.root),
        "--set", "gates.waivers={judge_agreement: no labels yet}", "--set", 'sources.use="embedded"',
    ]  # fmt: skip
    assert words(then(session, "preflight")) == ["rc1", "preflight", *shared]
    assert words(again(session, "round2")) == ["rc1", "round2", *shared]


def test_command_that_failed_on_its_input_is_repeated_as_typed(
    rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b.jsonl").write_text("{")
    typed = ("validate-pool", "--workspace", str(tmp_path), "a b.jsonl")
    monkeypatch.setattr("sys.argv", ["rc1", *typed])
    done = rc1(*typed)
    assert done.code == 2
    assert done.err.splitlines()[-1] == f"next, once that is fixed: {shlex.join(['rc1', *typed])}"


def test_invalid_setting_is_not_repeated(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("config", "verify", "--workspace", tmp_path, "--set", "pool.n=0")
    assert done.code == 2 and "next" not in done.err


# ---- before a long command ----


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with a setting that needs quoting in a shell."""
    made = Session(Options(tmp_path, None, "local", ["gates.waivers={judge_agreement: no labels yet}"]), io.StringIO())
    made.open({"sources.use": "embedded"})
    return made


def test_plans_fit_a_narrow_terminal_and_name_every_stage(session: Session) -> None:
    assert session.run is not None
    whole = preflight_outline(session.run, [1, 2], ticket=True)
    learning = training_outline(session.run, session.run.config.seeds[:1], {}, evaluate=True)
    assert max(map(len, whole + learning)) <= NARROW
    assert "30,000 rows" in whole[0]
    assert [line.split("  ")[1] for line in whole[1:]] == [
        "server", "data", "calibration", "round 1", "round 2", "ticket",
    ]  # fmt: skip
    assert any("64 steps of 128 episodes" in line for line in learning)
    assert not any("%" in line for line in learning), "the shares differ from configuration to configuration"


def test_workspace_remembers_its_settings(tmp_path: Path) -> None:
    run = opened(tmp_path, *MANY).run
    assert run is not None
    run.write_effective_config()
    later = Session(Options(tmp_path), io.StringIO())
    assert later.open(remembered=True).config == run.config
    place = ["--workspace", str(tmp_path)]
    assert words(then(later, "train")) == ["rc1", "train", *place], "it remembers by itself"
    assert words(then(later, "preflight")) == ["rc1", "preflight", "--config", str(tmp_path / EFFECTIVE), *place]
    on_top = Session(Options(tmp_path, overrides=["pool.n=7"]), io.StringIO()).open(remembered=True)
    assert on_top.config.pool.n == 7 and on_top.overrides == (*run.overrides, "pool.n=7")
    assert Session(Options(tmp_path), io.StringIO()).open().config.pool.n == 30000, "a preflight begins anew"


def test_workspace_does_not_decide_where_a_key_is_sent(tmp_path: Path) -> None:
    address = "judge.base_url=http://elsewhere.example/v1"
    run = opened(tmp_path, *MANY, "judge.provider=openai", "judge.model=m", address).run
    assert run is not None
    run.write_effective_config()
    with pytest.raises(ConfigError, match=r"judge\.base_url http://elsewhere\.example/v1.*--set judge\.base_url="):
        Session(Options(tmp_path), io.StringIO()).open(remembered=True)
    Session(Options(tmp_path, overrides=[address]), io.StringIO()).open(remembered=True)
