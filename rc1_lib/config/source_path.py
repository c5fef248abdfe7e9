"""Find the source that `sources.use` names, and whether it contains finished dialogues."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.config.run_config import RunConfig
from rc1_lib.workspace.artifacts import Workspace
from rc1_lib.workspace.input_files import form_of


def are_finished(config: RunConfig, workspace: Workspace) -> bool:
    """Return whether the source contains finished dialogues, which are used unchanged and cannot be played again."""
    use = config.sources.use
    return use not in ("embedded", "hub") and is_rows(source_path(use, workspace))


def is_rows(place: Path) -> bool:
    """Return whether `place` is a file of finished rows; otherwise it is a folder of public data sets."""
    return form_of(place) == ".jsonl" and not place.is_dir()


def source_path(use: str, workspace: Workspace) -> Path:
    """Return the folder (public data sets) or JSONL file (finished rows) that `sources.use` names.

    A relative path is searched in the current folder, then in the workspace, then in the project.
    """
    path = Path(use)
    return path if path.is_absolute() or path.exists() else workspace.find(use)
