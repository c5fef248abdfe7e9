"""The small workspace for kills: a base that learned to ask, and settings with which every gate passes."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.conftest import SMALL
from tests.ticketed import TINY
from tests.training.tiny_world import pool_rows, write_base

OVERRIDES = (*SMALL, *TINY, "training.warm_start.steps=3", "training.held_out.prompts=24")


def write_small_base(workspace: Path) -> None:
    """Write the base into a workspace, trained until it asks now and then."""
    torch.set_num_threads(1)
    write_base(workspace / "base", pool_rows(40), steps=400)


PLAN = (
    "build", "build", "calibration", "calibration", "round 1", "round 2", "ticket", "warm start", "training",
    "evaluation",
)  # fmt: skip
"""Stages of the kills in one workspace."""
