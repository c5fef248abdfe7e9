"""All that training needs: a small pool, a tiny base that has learned to call tools, and a ticket."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import torch

from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate, gates_of_round, not_applicable
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.run import Run, open_run
from tests.conftest import Verdicts
from tests.training.tiny_world import OVERRIDES, write_base

TINY = (
    *OVERRIDES, "training.reward.judge=0.3", "training.reward.success=0.7",
    "training.held_out.prompts=12", "training.held_out.judged=12",
    "training.held_out.share=0.2", "gates.training.min_steps=1",
    "gates.evaluation.min_prompts=1", "gates.evaluation.min_group=1", "gates.shared.resamples=20",
    "training.control.steps=3",
)  # fmt: skip
"""A training of seconds, with thresholds that such a training can pass."""


def copy_with_base(built: Run, root: Path) -> None:
    """Copy a built workspace and add a tiny base."""
    shutil.copytree(built.workspace.root, root)
    torch.set_num_threads(1)
    with (root / built.config.seed_pool).open("rb") as lines:
        rows = [row for row in map(orjson.loads, lines) if row["lang"] == "en"]
    write_base(root / "base", rows[:200])


def ticketed(root: Path, built: Run, verdicts: Verdicts, *overrides: str, config: Path | None = None) -> Run:
    """Write two passed rounds and a ticket under these settings to a workspace with pool and base; gives its run.

    Args:
        root: the workspace.
        built: the run whose pool it contains.
        verdicts: the verdicts on that pool; gates that read the configuration are evaluated again.
        overrides: settings of the training.
        config: the configuration file; default: the profile's own.
    """
    run = open_run(profile="local", config=config, workspace=root, overrides=(*built.overrides, *TINY, *overrides))
    evidence = Evidence(run)
    unjudged = not_applicable(run)
    for number, found in verdicts.items():
        specs = zip(gates_of_round(number), found, strict=True)
        now = [
            evaluate(spec.name, evidence, number) if "config" in spec.reads or spec.name in unjudged else given
            for spec, given in specs
        ]
        write_round(run, number, now)
    issue_ticket(run)
    return run
