"""What a long command says before it starts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from rc1_lib.cli.flows import preflight_outline, training_outline
from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session

from .conftest import NARROW


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with a setting that a shell would tear apart."""
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


def test_shares_are_told_only_of_what_was_measured_and_add_up(session: Session) -> None:
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


def test_the_seconds_of_the_last_training_take_the_place_of_shares(session: Session) -> None:
    assert session.run is not None
    plan = training_outline(session.run, session.run.config.seeds[:1], {"training": 384.2}, evaluate=True)
    assert next(line for line in plan if "training " in line).endswith("last time 384 s")
