"""Weights & Biases and MLflow: every step is tracked offline without a key, or an error comes before training."""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.config.curriculum import Tracking
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.callbacks.logs import Logging, TrainLog
from rc1_lib.training.callbacks.trackers import trackers_of
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.trainer import Trainer
from tests.training.tiny_world import tiny_run
from tests.training.toys import Counting, Doubling, Scale, ScaleSetup

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
FACTS = {"config": {"lr": 0.1, "judge": {"note": f"with {KEY} in it"}}, "seed": 7}


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(name) is None, reason=f"the extra '{name}' is not installed")


def train(folder: Path, to: str, last: int) -> None:
    """Train the first `last` steps of the same run with all logs."""
    trackers = trackers_of(Tracking(to=(to,), project="toys"), folder / "logs", "seed 7")  # type: ignore[arg-type]
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


def test_missing_tracker_package_is_rejected_before_the_run_is_prepared(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    run = tiny("training.tracking.to=[wandb]", "base_model=no/such")  # the next error
    with pytest.raises(ConfigError, match=r"^tracking\.to .*wandb"):
        prepare(run)


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


@needs("mlflow")
def test_mlflow_keeps_every_step_in_one_run_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    train(tmp_path, "mlflow", 2)
    train(tmp_path, "mlflow", 3)
    from mlflow import MlflowClient

    client: Any = MlflowClient(tracking_uri=(tmp_path / "logs/mlflow").as_uri())
    (experiment,) = [one for one in client.search_experiments() if one.name == "toys"]
    (run,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "sec_per_step")
    assert {one.step for one in history} == {1, 2, 3}
    assert (run.info.run_name, run.info.status, run.data.params["lr"]) == ("seed 7", "FINISHED", "0.1")


@needs("wandb")
def test_wandb_writes_every_step_to_an_offline_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    train(tmp_path, "wandb", 3)
    from wandb.proto import wandb_internal_pb2

    (file,) = (tmp_path / "logs/wandb").glob("offline-run-*/run-*.wandb")
    records = [wandb_internal_pb2.Record.FromString(one) for one in logged(file.read_bytes())]
    history = [one.history.step.num for one in records if one.WhichOneof("record_type") == "history"]
    assert history == [1, 2, 3]


def logged(content: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log after a header of seven bytes. Each has checksum, length, kind and content."""
    at = 7
    while at < len(content):
        _, length, kind = struct.unpack_from("<IHB", content, at)
        assert kind == 1, "a log of one block has only whole records"
        yield content[at + 7 : at + 7 + length]
        at += 7 + length


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in ("wandb", "mlflow")])
def test_no_written_file_contains_the_key(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WANDB_MODE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    train(tmp_path, name, 1)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 3 and [path for path in written if KEY.encode() in path.read_bytes()] == []
