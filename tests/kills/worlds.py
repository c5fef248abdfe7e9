"""The small workspace that is killed: a base that has learned to ask, and settings under which every gate is green."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.conftest import SMALL
from tests.ticketed import TINY
from tests.training.tiny_world import pool_rows, write_base

ANYTHING = tuple(
    f"gates.evaluation.{key}"
    for key in (
        "min_needed_up_pp=-100", "min_hard_up_pp=-100", "min_overclar_down_pct=-100000", "max_turns_up=100",
        "min_asking_up_pp=-200", "max_truth_down_pp=100",
    )
)  # fmt: skip
"""Whatever is trained passes: what is evaluated and kept for good is to be the same, not good."""
OVERRIDES = (*SMALL, *TINY, "training.warm_start.steps=3", "training.held_out.prompts=24", *ANYTHING)


def write_small_base(workspace: Path) -> None:
    """Write the base into a workspace: taught long enough that it asks, now and then."""
    torch.set_num_threads(1)
    write_base(workspace / "base", pool_rows(40), steps=400)


PLAN = (
    "build", "build", "calibration", "calibration", "round 1", "round 2", "ticket", "warm start", "training",
    "evaluation",
)  # fmt: skip
"""Where one life is killed."""
