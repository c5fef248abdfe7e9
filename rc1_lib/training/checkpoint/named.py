"""The checkpoint that a user's word leads to, or the sentence that the rule of what stays has removed it."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.training.checkpoint.ledger import was_removed
from rc1_lib.training.checkpoint.names import folder_name, resolve, steps
from rc1_lib.training.checkpoint.state import CheckpointError
from rc1_lib.workspace.artifacts import Workspace


def resolve_named(name: str, folder: Path, workspace: Workspace, ledger: Path, rule: str, instead: str) -> Path:
    """What a user's name leads to.

    Args:
        name: `latest`, a step of `folder`, or a path, below the workspace or as it stands.
        folder: where the run's checkpoints lie.
        workspace: that paths are looked for in.
        ledger: of its checkpoints.
        rule: the keys that say which checkpoints stay, and what they are now, for whoever names one that did not.
        instead: what to do then.

    Raises:
        CheckpointError: when there is none, saying which there are, and by what it went if the rule removed it.
    """
    below = workspace.path(name)
    try:
        return resolve(str(below) if "/" in name and below.exists() else name, folder)
    except CheckpointError:
        gone = folder / folder_name(int(name)) if name.isdecimal() else below
        if not was_removed(gone, None, ledger):
            raise
    there = ", ".join(str(step) for step in steps(folder)) or "none"
    raise CheckpointError(
        f"{gone}: was removed when newer ones had been saved, by {rule}; steps in {folder}: {there}; {instead}"
    )
