"""A model on the Hugging Face hub by name and commit, `NAME@COMMIT`; the bytes under a name alone may change."""

from __future__ import annotations

import re

from rc1_lib.errors import ConfigError

_COMMIT = re.compile(r"[0-9a-f]{40}")


def name_and_commit(base: str) -> tuple[str, str | None]:
    """Return the two parts of `NAME@COMMIT`; the second is None if missing."""
    name, _, commit = base.partition("@")
    return name, commit or None


def reads_like_folder(base: str) -> bool:
    """Return whether it can only be a folder, not a name on the hub."""
    return base.startswith(("models/", ".", "/"))


def check_pinned(base: str, key: str) -> None:
    """Reject a hub name without a commit.

    Args:
        base: a name that is not a local folder.
        key: its configuration key, for the message.

    Raises:
        ConfigError: says how to name a commit.
    """
    if reads_like_folder(base):
        raise ConfigError(f"{key}: {base} not found; name the folder of a model")
    name, commit = name_and_commit(base)
    if commit is None or not _COMMIT.fullmatch(commit):
        raise ConfigError(
            f"{key}: '{base}' is not a folder in the workspace or the project, and as a name on the hub it lacks a "
            f"commit, so its bytes could change; write {name}@COMMIT (the 40 hex digits under the files on the model's "
            f"page), or download it and name the folder"
        )
