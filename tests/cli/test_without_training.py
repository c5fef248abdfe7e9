"""The core needs no training library; a command that does ends with one message."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from rc1_lib.runtime import libraries
from rc1_lib.workspace.artifacts import PROJECT_ROOT

from .conftest import Rc1

NEEDS_EXTRA = "rc1: training needs the extra: pip install 'rc1[train]' (not installed: torch)\n"
_CORE = """
import sys
from importlib import import_module
from rc1_lib.cli import main
from rc1_lib.runtime.libraries import TRAINING

SMALL = ("--set", "pool.n=120", "--set", "shadow.n=30", "--set", "pool.workers=1", "--reward", "verified")
for line in (
    "build-pool", "validate-pool --max-dup-pct 100", "diversity-report", "difficulty-metrics", "difficulty-bucketize",
    "check-answers --task gsm8k", "probe-scorer", "ticket verify", "config verify", "report",
):
    try:
        main([*line.split(), "--workspace", sys.argv[1], *SMALL])
    except SystemExit as ended:
        assert ended.code in ((2,) if line == "ticket verify" else (0, None, 2)), line
for name in ("preflight", "calibrate", "scale_up"):
    import_module(f"flows.{name}")
import_module("deployments.register")
print("loaded:", sorted({name.partition(".")[0] for name in sys.modules} & {*TRAINING, "datasets", "huggingface_hub"}))
"""


def _absent(name: str) -> ModuleSpec | None:
    return None if name == "torch" else ModuleSpec(name, None)


def test_core_commands_and_flows_import_no_training_library(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    done = subprocess.run([sys.executable, "-c", _CORE, tmp_path], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["loaded: []"]), done.stderr


@pytest.mark.parametrize("name", ["train", "evaluate", "doctor"])
def test_training_command_without_torch_names_the_extra(
    rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(libraries, "find_spec", _absent)
    given = ("latest",) if name == "evaluate" else ()
    done = rc1(name, *given, "--workspace", tmp_path)
    assert (done.code, done.out, done.err) == (2, "", NEEDS_EXTRA)
    assert list(tmp_path.iterdir()) == []


def test_extra_train_has_the_training_libraries_and_the_core_has_none() -> None:
    with (PROJECT_ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)["project"]
    train = {one.partition("==")[0] for one in project["optional-dependencies"]["train"]}
    assert train == {*libraries.TRAINING, "datasets", "tensorboard"}
    assert [one for one in project["dependencies"] if one in train] == []
