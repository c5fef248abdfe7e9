"""Whether a checkpoint and a small local configuration mean the same run, so that going on makes sense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rc1_lib.config.engines import own_name
from rc1_lib.config.file import flatten
from rc1_lib.training.checkpoint.retention import resolve_named
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointError, CheckpointState
from rc1_lib.training.process import restore_process
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.training.train_config import TrainConfig
from rc1_lib.workspace.artifacts import Workspace

_FREE = ("run.output_dir", "run.log_file", "run.save_steps", "run.save_minutes", "run.keep_last", "run.max_steps")
"""Keys that a resumed run may change: they do not change what any step learns."""


def resumed_state(
    name: str, config: TrainConfig, workspace: Workspace, facts: Mapping[str, Any], notice: Callable[[str], None]
) -> CheckpointState:
    """The state to go on from; this process takes over its number of threads.

    Args:
        name: `latest`, a step, or a path (below the workspace, or as it stands).
        config: what this run is to be trained by.
        workspace: where the checkpoints lie.
        facts: `config`, `base` and `data` as this run would save them.
        notice: told what is taken from the checkpoint, and what is not as it was.

    Raises:
        CheckpointError: when there is no such checkpoint, or naming the keys of the configuration, the data or the
            base that are not those of the run that wrote it.
    """
    path = resolve_named(
        name,
        workspace.path(config.run.output_dir),
        workspace,
        workspace.path(LEDGER),
        f"run.keep_last ({config.run.keep_last})",
        "name one of them",
    )
    state = load_checkpoint(path)
    if differ := differences(state.values, facts):
        raise CheckpointError(
            f"{path}: belongs to another run, these differ: {', '.join(differ)}. Go on with what it was trained with, "
            f"or start without resuming"
        )
    for shown in restore_process(state.values["process"]):
        notice(shown)
    notice(f"resumed from {path.name}; the configuration is the command line's, and equals the checkpoint's")
    return state


def differences(values: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """What makes a checkpoint one of another run.

    Args:
        values: of the checkpoint.
        facts: `config`, `base` and `data` as the run would save them.
    """
    differ = [key for key in ("base", "data") if values.get(key) != facts[key]]
    old, new = (_decisive(tree) for tree in (values.get("config", {}), facts["config"]))
    changed = [key for key in sorted(old | new) if old.get(key) != new.get(key)]
    return differ + [f"{key} ({old.get(key)} there, {new.get(key)} now)" for key in changed]


def _decisive(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys that decide what a step learns. A falling rate depends on the last step, a constant one does not."""
    leaves = flatten(tree)
    # Callbacks without settings only look; of those with settings each one acts.
    acting = [callback for callback in tree.get("callbacks", ()) if len(callback) > 1]
    falls = any(callback["name"] == "lr_schedule" and callback["kind"] != "constant" for callback in acting)
    leaves["callbacks"] = acting
    if "engine.name" in leaves:
        leaves["engine.name"] = own_name(str(leaves["engine.name"]))
    return {key: value for key, value in leaves.items() if key not in _FREE or (falls and key == "run.max_steps")}
