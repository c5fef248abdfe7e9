"""An evaluation that was stopped goes on with the plays that it has kept."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation import policies
from rc1_lib.evaluation.episodes import EvaluationError
from rc1_lib.evaluation.plays import OF_TRAINING, Plays, forget_plays
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.device import Precision
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import prepare
from rc1_lib.workspace.artifacts import read_json
from tests.training.export.conftest import OVERRIDES, Exported
from tests.training.tiny_world import tiny_run


class StoppedError(Exception):
    """What a kill is in this test."""


@pytest.fixture
def run(exported: Exported, tmp_path: Path) -> Run:
    root = shutil.copytree(exported[0].workspace.root, tmp_path / "copied", symlinks=True)
    run = tiny_run(root, *OVERRIDES)
    forget_plays(run)
    return run


def evaluated(run: Run, monkeypatch: pytest.MonkeyPatch, plays: int) -> dict[str, Any]:
    """Evaluate; the process is stopped in the play after the first `plays` ones."""
    left, play = iter(range(plays)), PolicyEngine.play

    def counted(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is None:
            raise StoppedError
        return play(*args, **kwargs)

    monkeypatch.setattr(PolicyEngine, "play", counted)
    checkpoint = run.workspace.path("checkpoints/rc1/step_00002")
    try:
        found = policies.evaluate_run(prepare(run), {run.config.seeds[0]: fingerprint(checkpoint)})
    finally:
        monkeypatch.setattr(PolicyEngine, "play", play)
    assert next(left, None) is None, "fewer plays were needed"
    return {key: value for key, value in read_json(run.workspace.path(found.report)).items() if key != "time"}


def test_stopped_evaluation_plays_only_what_is_left_and_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluated(run, monkeypatch, 4)
    assert whole["resumed_plays"] == 0
    forget_plays(run)  # as a training does, when its report names the evaluation
    assert not run.workspace.path(OF_TRAINING).exists()
    for kept in (1, 3):  # the first play of each process counts, and it stops in the one after these
        with pytest.raises(StoppedError):
            evaluated(run, monkeypatch, kept - len(list(run.workspace.path(OF_TRAINING).glob("*"))))
    again = evaluated(run, monkeypatch, 1)
    assert again == {**whole, "resumed_plays": 3}
    assert evaluated(run, monkeypatch, 0) == {**whole, "resumed_plays": 4}, "killed before the training's report"


def test_play_in_another_precision_is_not_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, played, plays = [{"id": "a"}], list[str](), Plays(run)

    def get() -> None:
        plays.get("policy", 1.0, rows, lambda: played.append("again") or [])

    with suppress(EvaluationError):  # an empty play is kept, which is of no rows
        get()
        get()
    assert len(played) == 1
    monkeypatch.setattr("rc1_lib.evaluation.plays.precision_of", lambda *_: Precision.BF16)
    get()
    assert len(played) == 2


@pytest.mark.parametrize(
    ("damage", "words"),
    [(b"", "holds other prompts"), (b'{"row_id": "x"}\n', "not a play"), (b"\0", "not a play")],
)
def test_damaged_play_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, damage: bytes, words: str) -> None:
    with pytest.raises(StoppedError):
        evaluated(run, monkeypatch, 1)
    (play,) = run.workspace.path(OF_TRAINING).iterdir()
    play.write_bytes(damage)
    with pytest.raises(RC1Error, match=rf"{play.name}: {words}"):
        evaluated(run, monkeypatch, 0)
