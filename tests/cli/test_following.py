"""The plan that a long command prints first, and the next command, which can be typed for the same run."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest
import yaml

from rc1_lib.cli import endings
from rc1_lib.cli.endings import Ending, after_preflight, after_training, again, flagged, then, warned
from rc1_lib.cli.flows import preflight_outline, training_outline
from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session
from rc1_lib.preflight.ticket import TICKET
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


def test_recorded_file_is_named_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(tmp_path, *MANY)
    assert session.run is not None
    session.run.write_effective_config()
    monkeypatch.chdir(tmp_path)
    assert f" --config {EFFECTIVE} " in then(session, "train")
    reopened = Session(Options(tmp_path, Path(EFFECTIVE)), io.StringIO())
    assert reopened.open() == session.run
    assert words(then(reopened, "train"))[2:4] == ["--config", EFFECTIVE]


def test_reward_and_sources_are_shown_by_their_own_flags(tmp_path: Path) -> None:
    session = opened(tmp_path, "pool.n=600", sources="embedded", reward="verified")
    shown = ["--set", "pool.n=600", "--reward", "verified", "--sources", "embedded"]
    assert words(then(session, "train"))[4:] == shown


def test_gate_thresholds_given_as_flags_are_repeated_only_for_the_same_command(tmp_path: Path) -> None:
    session = Session(Options(tmp_path), io.StringIO())
    session.open({"pool.seed": 3, "gates.length.min_len": 9})
    place = ["--workspace", str(tmp_path)]
    assert words(then(session, "preflight")) == ["rc1", "preflight", *place, "--set", "pool.seed=3"]
    assert words(again(session, "validate-pool", *flagged({"": "a b.jsonl", "--task": None}))) == [
        "rc1", "validate-pool", "a b.jsonl", *place, "--set", "pool.seed=3", "--set", "gates.length.min_len=9",
    ]  # fmt: skip


def test_preflight_without_torch_suggests_a_machine_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(Options(tmp_path), io.StringIO())
    session.open()
    monkeypatch.setattr(endings, "lacking_for_training", lambda: ("torch",))
    line = after_preflight(session, [1, 2], passed=True)
    assert line == f"next, where the extra train is installed: rc1 preflight --workspace {tmp_path}"


def test_next_command_repeats_workspace_profile_and_settings(tmp_path: Path) -> None:
    """Another configuration would be another run."""
    setting = "gates.waivers={judge_agreement: no labels yet}"  # needs quoting in a shell
    session = Session(Options(tmp_path, None, "local", [setting]), io.StringIO())
    run = session.open({"sources.use": "embedded"})

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


def test_missing_ticket_suggests_a_preflight(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("train", "--workspace", tmp_path, "--set", "pool.n=600")
    assert done.code == 2
    assert done.err.splitlines()[-1] == f"next, for a ticket: rc1 preflight --workspace {tmp_path} --set pool.n=600"


def ticket_of(config_sha256: str) -> dict[str, object]:
    """A well-formed but invalid ticket."""
    empty = {name: {} for name in ("files", "reports", "waived", "not_applicable", "config")}
    times = {"issued": "2026-01-01T00:00:00+00:00", "expires": "2026-01-02T00:00:00+00:00"}
    judge = {"provider": "rubric", "spec": "v1"}
    nothing = dict.fromkeys(("commit", "ticket_sha256", "revoked"), None)
    return {"version": 1, "profile": "local", "judge": judge, "config_sha256": config_sha256} | empty | times | nothing


def test_ticket_of_recorded_settings_suggests_to_verify_with_them(rc1: Rc1, tmp_path: Path) -> None:
    run = opened(tmp_path, *MANY).run
    assert run is not None
    run.write_effective_config()
    path = tmp_path / TICKET
    path.parent.mkdir(parents=True)
    with_those = f"rc1 ticket verify --workspace {tmp_path}"
    for issued, following in (
        (run.config_sha256, f"next, with the ticket's own settings: {with_those}"),
        ("another one", f"next, for a ticket: rc1 preflight --workspace {tmp_path} --set pool.n=7"),
    ):
        path.write_text(json.dumps(ticket_of(issued)))
        done = rc1("release", "--workspace", tmp_path, "--set", "pool.n=7")
        assert done.code == 2 and "the effective configuration differs" in done.err
        assert done.err.splitlines()[-1] == following


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
    done = rc1("config", "show", "--workspace", tmp_path, "--set", "pool.n=0")
    assert done.code == 2 and "next" not in done.err


def test_config_show_prints_yaml_to_stdout_and_the_ending_to_stderr(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("config", "show", "--workspace", tmp_path, "--set", "pool.n=600")
    assert yaml.safe_load(done.out)["pool"]["n"] == 600
    assert done.err.splitlines() == [
        "done: effective configuration of configs/local.yaml, not verified",
        f"next: rc1 config verify --workspace {tmp_path} --set pool.n=600",
    ]


def test_pool_too_small_for_training_is_reported_with_the_ticket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(tmp_path, "pool.n=600")
    run = session.run
    assert run is not None
    ending = Ending("pass", "ticket", following=then(session, "train"))
    found = {"empty": "", "few": ""}
    monkeypatch.setattr("rc1_lib.forecast.too_few.shortages", lambda _: (found["empty"], found["few"]))
    assert warned(session, run, ending) == ending
    found["few"] = "at most 9 prompts"
    shown = warned(session, run, ending).lines()
    assert shown[0] == "pass: ticket" and shown[1] == "  at most 9 prompts"
    assert shown[-1].startswith("next: rc1 train --no-evaluate ")
    found["empty"] = "no hard rows"
    shown = warned(session, run, ending).lines()
    assert shown[1] == "  training will reject this pool: no hard rows"
    assert shown[-1].startswith("next, with other settings: rc1 preflight ")


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
    learning = training_outline(session.run, session.run.config.seeds, {}, evaluate=True)
    assert max(map(len, whole + learning)) <= NARROW
    assert "30,000 rows" in whole[0]
    assert [line.split("  ")[1] for line in whole[1:]] == [
        "server", "data", "calibration", "round 1", "round 2", "ticket",
    ]  # fmt: skip
    assert any("48 steps of 128 episodes" in line for line in learning)


def test_plan_shows_shares_of_time_only_when_measured_and_they_sum_to_100(session: Session) -> None:
    assert session.run is not None
    seeds = session.run.config.seeds
    for plan in (
        preflight_outline(session.run, [1, 2], ticket=True),
        training_outline(session.run, seeds[:1], {}, evaluate=True),
    ):
        assert sum(int(line.rpartition("about ")[2].rstrip("%")) for line in plan if "about" in line) == 100
    for plan in (
        preflight_outline(session.run, [1], ticket=False),
        training_outline(session.run, seeds, {}, evaluate=True),
        training_outline(session.run, seeds[:1], {}, evaluate=False),
    ):
        assert "about" not in "".join(plan)


def test_plan_shows_the_seconds_of_the_last_training_instead_of_shares(session: Session) -> None:
    assert session.run is not None
    plan = training_outline(session.run, session.run.config.seeds[:1], {"training": 384.2}, evaluate=True)
    assert next(line for line in plan if "training " in line).endswith("last time 384 s")


def test_workspace_remembers_its_settings(tmp_path: Path) -> None:
    run = opened(tmp_path, *MANY).run
    assert run is not None
    run.write_effective_config()
    assert Session(Options(tmp_path), io.StringIO()).open(remembered=True).config == run.config
    on_top = Session(Options(tmp_path, overrides=["pool.n=7"]), io.StringIO()).open(remembered=True)
    assert on_top.config.pool.n == 7 and on_top.overrides == (*run.overrides, "pool.n=7")
    assert Session(Options(tmp_path), io.StringIO()).open().config.pool.n == 30000, "a preflight begins anew"
