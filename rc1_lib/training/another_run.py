"""Checkpoints of another run in this run's folder: rejected, or removed with `--start-over`.

A folder of checkpoints with its metrics and segments belongs to one run. A second run in the same place would replace
the first one step by step, and an interruption would leave two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.config.file import flatten
from rc1_lib.provenance.git import code_words
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import LATEST, CheckpointError
from rc1_lib.training.checkpoint.ledger import written_by
from rc1_lib.training.checkpoint.manifest import steps
from rc1_lib.training.checkpoint.save_load import STATE, load_to_resume
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import Workspace

Differs = Callable[[Mapping[str, Any]], list[str]]
"""Returns in what a checkpoint's values differ from this run's; empty for a checkpoint of this run."""
_SHOWN = 6


class AnotherRunError(CheckpointError):
    """The checkpoint belongs to another run: other seed, settings, data, base or code."""


def differences(values: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """List what shows that a checkpoint belongs to another run: changed settings with both values, other facts by name.

    Args:
        facts: all or some of the facts of this run; the settings are `config`.
    """
    there, now = (
        flatten(tree) if isinstance(tree, Mapping) else {} for tree in (values.get("config"), facts["config"])
    )
    changed = [key for key in sorted(there.keys() | now.keys()) if there.get(key) != now.get(key)]
    others = [key for key, value in facts.items() if key != "config" and values.get(key) != value]
    return [f"{key} ({there.get(key)} there, {now.get(key)} now)" for key in changed] + others


def state_of_run(checkpoint: Path, ledger: Path, differs: Differs) -> CheckpointState:
    """Load the state of a checkpoint that a user named.

    Raises:
        AnotherRunError: if it belongs to another run; naming what differs.
        CheckpointError: if it is damaged.
    """
    state = load_to_resume(checkpoint, ledger)
    if differ := differs(state.values):
        raise AnotherRunError(
            f"{checkpoint}: belongs to another run, {_in_words(differ, checkpoint, ledger)}. Resume with the settings "
            "that it was trained with, or start without resuming"
        )
    return state


def _in_words(differ: list[str], checkpoint: Path, ledger: Path) -> str:
    """Describe what differs as part of a sentence. If the code differs, name the version that wrote the checkpoint."""
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
    """Map checkpoints of other runs, oldest step first, to what differs. Skips those whose values cannot be read."""
    read = ((path, _values(path)) for path in steps(folder).values())
    return {path: differ for path, values in read if values and (differ := differs(values))}


def refuse_others(folder: Path, ledger: Path, differs: Differs) -> None:
    """Refuse to train over another run's checkpoints.

    Args:
        ledger: `reports/ckpt_manifest.jsonl`.

    Raises:
        AnotherRunError: naming the newest of them, what differs, and what to do.
    """
    if others := others_in(folder, differs):
        path, differ = list(others.items())[-1]
        raise AnotherRunError(
            f"{path}: belongs to another run, {_in_words(differ, path, ledger)}. Training here would replace it; use "
            f"another --workspace, move {folder} away, or add --start-over to remove that run's checkpoints and metrics"
        )


def check_no_other_run(
    folder: Path, workspace: Workspace, metrics: str, differs: Differs, start_over: bool, notice: Callable[[str], None]
) -> None:
    """Refuse to train over another run's checkpoints, or remove them, except those in `best/`.

    This run's own checkpoints stay, so a killed training resumes when the same command is started again. The metrics
    are removed first: after a kill in between, the checkpoints left are rejected again, and no foreign metrics remain.

    Args:
        workspace: holds their ledger.
        metrics: file of the run, relative to the workspace.
        notice: called with what was removed.

    Raises:
        AnotherRunError: if there are checkpoints of another run and `start_over` is False.
    """
    if not start_over:
        refuse_others(folder, workspace.path(LEDGER), differs)
        return
    if not folder.is_dir():
        return
    with atomic_folder.write_lock(folder):
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
        notice(f"--start-over removed {metrics} and {len(others)} checkpoints of another run in {folder.name}")


def _values(checkpoint: Path) -> dict[str, Any]:
    """Read a checkpoint's values without checking them; empty if unreadable."""
    try:
        values = orjson.loads((checkpoint / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
