"""Checkpoints that another run has left where this one writes: refused, or removed where the user says so.

A folder of checkpoints, its metrics and its segments belong to one run. A second one in the same place would take the
first apart step by step, and leave two halves where it is interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.config.file import flatten
from rc1_lib.gates.machine import code_words
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import LATEST, CheckpointError
from rc1_lib.training.checkpoint.ledger import written_by
from rc1_lib.training.checkpoint.manifest import steps
from rc1_lib.training.checkpoint.save_load import STATE, load_to_resume
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import Workspace

Differs = Callable[[Mapping[str, Any]], list[str]]
"""What a checkpoint's values and the run's own differ in; nothing for one of this run."""
_SHOWN = 6


class AnotherRunError(CheckpointError):
    """A checkpoint of another run: of another seed, or of other settings, data, base or code."""


def differences(values: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """What makes a checkpoint one of another run: the settings by their keys, each with both values; all else by name.

    Args:
        values: of the checkpoint.
        facts: that decide the run, or some of them; the settings are `config`.
    """
    there, now = (
        flatten(tree) if isinstance(tree, Mapping) else {} for tree in (values.get("config"), facts["config"])
    )
    changed = [key for key in sorted(there.keys() | now.keys()) if there.get(key) != now.get(key)]
    others = [key for key, value in facts.items() if key != "config" and values.get(key) != value]
    return [f"{key} ({there.get(key)} there, {now.get(key)} now)" for key in changed] + others


def state_of_run(checkpoint: Path, ledger: Path, differs: Differs) -> CheckpointState:
    """The state of a checkpoint that a user names to go on from.

    Raises:
        AnotherRunError: when it is of another run: naming what differs.
        CheckpointError: when it is damaged.
    """
    state = load_to_resume(checkpoint, ledger)
    if differ := differs(state.values):
        raise AnotherRunError(
            f"{checkpoint}: belongs to another run, {_in_words(differ, checkpoint, ledger)}. Go on with what it was "
            f"trained with, or start without resuming"
        )
    return state


def _in_words(differ: list[str], checkpoint: Path, ledger: Path) -> str:
    """What differs, as part of a sentence; of another code also which version wrote the checkpoint."""
    shown = [_code(written_by(checkpoint, ledger)) if one == "code" else one for one in differ[:_SHOWN]]
    more = [f"and {len(differ) - _SHOWN} more"] if len(differ) > _SHOWN else []
    return f"these differ: {', '.join([*shown, *more])}"


def _code(writer: str | None) -> str:
    now = code_words()
    if writer is None:
        return f"code (now {now})"
    if writer == now:
        return f"code (both are {now}: changed files, Python or a library)"
    return f"code (written by {writer}; now {now})"


def others_in(folder: Path, differs: Differs) -> dict[Path, list[str]]:
    """Checkpoints of other runs, oldest step first -> what differs. One that does not say what it is is damaged."""
    read = ((path, _values(path)) for path in steps(folder).values())
    return {path: differ for path, values in read if values and (differ := differs(values))}


def refuse_others(folder: Path, ledger: Path, differs: Differs) -> None:
    """Refuse to train over another run's checkpoints.

    Args:
        folder: where the run's checkpoints lie.
        ledger: `reports/ckpt_manifest.jsonl`.
        differs: from this run.

    Raises:
        AnotherRunError: naming the newest of them, what differs, and what to do.
    """
    if others := others_in(folder, differs):
        path, differ = list(others.items())[-1]
        raise AnotherRunError(
            f"{path}: belongs to another run, {_in_words(differ, path, ledger)}. Training here would replace it; "
            f"take another --workspace, move {folder} away, or add --start-over, which removes that run's checkpoints "
            f"and metrics"
        )


def check_alone(
    folder: Path, workspace: Workspace, metrics: str, differs: Differs, start_over: bool, notice: Callable[[str], None]
) -> None:
    """Refuse to train over what another run has left, or remove that, but for what was kept for good.

    This run's own checkpoints stay, so that a killed training that is started again by the same command goes on. The
    metrics go first: a kill on the way leaves checkpoints that are refused again, never other runs' lines.

    Args:
        folder: where the run's checkpoints lie.
        workspace: with their ledger.
        metrics: of the run, relative to the workspace.
        differs: from this run.
        start_over: remove it.
        notice: called with what was removed.

    Raises:
        AnotherRunError: when another run's checkpoints are there and are to stay.
    """
    if not start_over:
        refuse_others(folder, workspace.path(LEDGER), differs)
        return
    if not folder.is_dir():
        return
    with atomic_folder.alone(folder):
        atomic_folder.recover(folder)
        others = others_in(folder, differs)
        if others:
            workspace.path(metrics).unlink(missing_ok=True)
        for path in others:
            atomic_folder.remove(path)
        link = folder / LATEST
        if link.is_symlink() and not link.exists():
            link.unlink()
    if others:
        notice(f"removed, by --start-over: {metrics} and {len(others)} checkpoints of another run in {folder.name}")


def _values(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, not checked; nothing where it cannot be read."""
    try:
        values = orjson.loads((checkpoint / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
