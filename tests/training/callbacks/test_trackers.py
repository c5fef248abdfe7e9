"""Weights & Biases and MLflow: every step is tracked offline without a key, or an error comes before training."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.config.curriculum import Tracking
from rc1_lib.errors import ConfigError
from rc1_lib.extras.trackers.wandb import Run as WandbRun
from rc1_lib.run import Run
from rc1_lib.training.callbacks.logs import Logging, TrainLog
from rc1_lib.training.callbacks.trackers import trackers_of
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.trainer import Trainer
from rc1_lib.workspace.artifacts import write_text
from tests.training.tiny_world import tiny_run
from tests.training.toys import Counting, Doubling, Scale, ScaleSetup

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
FACTS = {"config": {"lr": 0.1, "judge": {"note": f"with {KEY} in it"}}, "seed": 7}


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(name) is None, reason=f"the extra '{name}' is not installed")


def train(folder: Path, to: str, last: int) -> None:
    """Train the first `last` steps of the same run with all logs."""
    trackers = trackers_of(Tracking(to=(to,)), folder / "logs", "seed 7")  # type: ignore[arg-type]
    log = TrainLog(folder / "logs/train.log")
    logging = Logging(folder / "reports/metrics.jsonl", folder / "logs/tensorboard", log, trackers)
    Trainer(Scale(), ScaleSetup(0.1), Doubling(), Counting(), [logging], last, 0, FACTS).fit(None)


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_missing_tracker_package_is_rejected_before_a_file_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ConfigError, match=rf"^tracking\.to .*'rc1\[{name}\]'"):
        train(tmp_path, name, 1)
    assert not list(tmp_path.iterdir())


def test_settings_of_the_current_folder_name_no_server_for_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "online")
    write_text(tmp_path / "wandb/settings", "[default]\nbase_url = http://elsewhere\n")
    with pytest.raises(ConfigError, match="wandb/settings: W&B reads the server's address from it"):
        WandbRun(tmp_path / "logs", "rc1", "seed 7", "key", {})


def test_tracker_whose_server_is_away_ends_no_training(tmp_path: Path) -> None:
    class Away:
        def log(self, step: int, metrics: object) -> None:
            raise ConnectionError("nobody answers")

        def close(self) -> None: ...

    log = TrainLog(tmp_path / "train.log")
    logging = Logging(tmp_path / "metrics.jsonl", tmp_path / "tensorboard", log, [lambda _: Away()])
    Trainer(Scale(), ScaleSetup(0.1), Doubling(), Counting(), [logging], 2, 0, FACTS).fit(None)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert "step 2 was not logged by Away: nobody answers" in (tmp_path / "train.log").read_text()


@needs("mlflow")
def test_tracked_run_logs_all_segments_and_ends_with_the_same_bytes(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = tiny("training.tracking.to=[mlflow]")
    prepared, seed = prepare(run), run.config.seeds[0]
    for last in (2, 4):
        advance(prepared, seed, last, lambda _: None)
    tracked = fingerprint(run.workspace.path("checkpoints/rc1/step_00004"))
    shutil.rmtree(run.workspace.path("checkpoints"))
    plain = tiny_run(run.workspace.root)
    assert fingerprint(advance(prepare(plain), seed, 4, lambda _: None)) == tracked
    from mlflow import MlflowClient

    client: Any = MlflowClient(tracking_uri=run.workspace.path("logs/mlflow").as_uri())
    (found,) = client.search_runs([one.experiment_id for one in client.search_experiments() if one.name == "rc1"])
    assert [one.step for one in client.get_metric_history(found.info.run_id, "sec_per_step")] == [1, 2, 3, 4]
    assert {"loss", "loss.policy_avg"} <= set(found.data.metrics)
    assert found.data.params["steps"] == "4" and found.info.run_name == f"seed {seed}"


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in ("wandb", "mlflow")])
def test_no_written_file_contains_the_key(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WANDB_MODE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    train(tmp_path, name, 1)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 3 and [path for path in written if KEY.encode() in path.read_bytes()] == []
