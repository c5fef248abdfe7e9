"""A run in several processes ends with the bytes of one process, also after kills."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.run import Run
from rc1_lib.training.api import Setup
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.ranks.group import GO_ON
from rc1_lib.training.resource_errors import LostError
from tests.training.test_ppo_run import go
from tests.training.tiny_world import tiny_run

Tiny = Callable[..., Run]
SHARDS = "training.shards=2"


@pytest.fixture(scope="module")
def alone(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The fingerprint of the run's end with all shards in one process."""
    root = tmp_path_factory.mktemp("alone") / "workspace"
    shutil.copytree(tiny_workspace, root)
    go(tiny_run(root, SHARDS, "training.processes=1"), 4)
    return end_of(root)


def end_of(root: Path) -> str:
    return fingerprint(root / "checkpoints/rc1/step_00004")


def test_process_killed_in_a_step_is_reported_and_the_next_start_resumes(
    tiny: Tiny, alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny(SHARDS, "training.processes=2")
    prepared = prepare(run)
    train_step = TorchPPO.train_step

    def killing(engine: TorchPPO, batch: dict[str, Any]) -> dict[str, float]:
        assert engine._group is not None and engine._group._workers is not None
        if batch["step"] == 2:
            engine._group._workers.processes[0].kill()
        return train_step(engine, batch)

    with monkeypatch.context() as patched:
        patched.setattr(TorchPPO, "train_step", killing)
        with pytest.raises(LostError, match=rf"^process 2 of 2 .*signal 9; {GO_ON}"):
            advance(prepared, run.config.seeds[0], 4, lambda _: None)
    assert go(run, 4) == ["resumes from step_00002"]
    assert end_of(run.workspace.root) == alone


def test_sharded_episodes_are_returned_in_the_order_of_their_rows(tiny: Tiny) -> None:
    run = tiny(SHARDS, "training.processes=1")
    engine = TorchPPO()
    engine.setup(Setup.of_run(run.config, str(run.workspace.path(run.config.base_model)), 5))
    rows = prepare(run).selection.train[:7]
    played = engine.play(rows, [row["id"] for row in rows], temperature=0.0, seed=1, iteration=0, to_learn=True)
    assert [each.row_id for each in played] == [row["id"] for row in rows]
    for each in played:
        assert each.states is not None and each.states.shape[0] == each.action_count
