"""Building in a process that has nothing of ours but what the builder imports, and telling what that was.

Each of these functions is called in a fork of the tests' interpreter, which others' packages are imported in already.
All that is ours is forgotten there first, so that whatever is loaded in the end was imported on the way.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.forks import PROJECT_ROOT, Forks

for _other in ("matplotlib.figure", "pandera.polars", "scipy.stats", "trl"):
    importlib.import_module(_other)  # what builders import lazily of others' packages: once, before anything is forked

OURS = ("rc1_lib", "tasks", "flows", "deployments")
"""The packages that fingerprints are taken of; a test compares."""
_MARK = "loaded:"
"""Begins what is told; builders print, too."""


def build(builder: str, root: str, *overrides: str) -> None:
    """Call a builder that asks for a run and nothing else."""
    run = _opened(root, *overrides)
    module, _, function = builder.rpartition(".")
    getattr(importlib.import_module(module), function)(run)
    _tell()


def warm_start(root: str, *overrides: str) -> None:
    """Make the reference of whatever rows the pool has: choosing among them is not its builder's work."""
    run = _opened(root, *overrides)
    builder = importlib.import_module("rc1_lib.training.warm_start")
    lines = run.workspace.path(run.config.seed_pool).read_text(encoding="utf-8").splitlines()[:20]
    rows = [{**row, "bucket": row["recipe"]} for row in map(json.loads, lines)]
    tokenizer = builder.load_tokenizer(builder.model_section(run.config, str(run.workspace.find("base"))))
    made = builder.reference_of(run, rows, builder.ChatFormat(tokenizer))
    assert Path(made.base) == run.workspace.path("checkpoints/sft")
    _tell()


def first_step(root: str, *overrides: str) -> None:
    """Bring a run to its first step."""
    run = _opened(root, *overrides)
    builder = importlib.import_module("rc1_lib.training.ppo_run")
    builder.advance(builder.prepare(run), run.config.seeds[0], 1, lambda _: None)
    _tell()


def evaluation(root: str, *overrides: str) -> None:
    """Evaluate what another process has trained: its engine and strategy are not to be seen here."""
    run = _opened(root, *overrides)
    builder = importlib.import_module("rc1_lib.evaluation.policies")
    prepare = importlib.import_module("rc1_lib.training.ppo_run").prepare
    (trained,) = run.workspace.path("checkpoints/rc1").glob("step_*")
    builder.evaluate_run(prepare(run), {run.config.seeds[0]: builder.fingerprint(trained)})
    _tell()


def loaded(forks: Forks, function: str, *arguments: object) -> set[str]:
    """The files of ours that were loaded when that function, of this module, had built what it builds."""
    done = forks.start(f"{__name__}.{function}", *arguments)
    assert done.wait() == 0, done.told()
    *_, (_, told) = (line.split(_MARK) for line in done.told().splitlines() if _MARK in line)
    return set(json.loads(told))


def _opened(root: str, *overrides: str) -> Any:
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    return importlib.import_module("rc1_lib.run").open_run(profile="local", workspace=Path(root), overrides=overrides)


def _tell() -> None:
    files = (getattr(one, "__file__", None) or "" for one in list(sys.modules.values()))
    inside = (file.removeprefix(f"{PROJECT_ROOT}/") for file in files)
    print(_MARK, json.dumps([name for name in inside if name.partition("/")[0] in OURS]), flush=True)
