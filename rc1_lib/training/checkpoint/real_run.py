"""Which checkpoints are a real run's: only of those a policy is kept, shipped or built upon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.training import control, trial_mark
from rc1_lib.training.checkpoint.state import CheckpointError

_OTHERS = {
    control.FACT: "on a reward without information (rc1 train --control {}), to try the evaluation out",
    trial_mark.FACT: "on random weights (rc1 train --random-base), to try a shape out",
}
"""Fact of a checkpoint -> how such a run was trained, and what for."""


def check_real_run(facts: Mapping[str, Any], name: str) -> None:
    """Refuse what a control or a trial was trained to.

    Args:
        facts: of the checkpoint.
        name: of the checkpoint, for the refusal.

    Raises:
        CheckpointError: when no real run wrote it.
    """
    for fact, trained in _OTHERS.items():
        if facts.get(fact) is not None:
            raise CheckpointError(
                f"{name}: was trained {trained.format(facts[fact])}, and is no policy to keep; take a checkpoint of a "
                f"real run"
            )
