"""A model on the Hugging Face hub, by name and commit: `NAME@COMMIT`. A name alone means other bytes tomorrow."""

from __future__ import annotations

import re

from rc1_lib.errors import ConfigError

_COMMIT = re.compile(r"[0-9a-f]{40}")


def name_and_commit(base: str) -> tuple[str, str | None]:
    """`NAME@COMMIT` in its two parts; the second is None where none is named."""
    name, _, commit = base.partition("@")
    return name, commit or None


def reads_like_folder(base: str) -> bool:
    """Whether nobody would take it for a name on the hub."""
    return base.startswith(("models/", ".", "/"))


def check_pinned(base: str, key: str) -> None:
    """Refuse a hub's name without a commit.

    Args:
        base: what is no folder here.
        key: of the configuration, for the refusal.

    Raises:
        ConfigError: saying how to name one.
    """
    if reads_like_folder(base):
        raise ConfigError(f"{key}: {base} is not there; build it with `rc1 build-base`, or name another model")
    name, commit = name_and_commit(base)
    if commit is None or not _COMMIT.fullmatch(commit):
        raise ConfigError(
            f"{key}: '{base}' is no folder of the workspace or the project, and as a name on the hub it names no "
            f"commit, so that nothing would vouch for its bytes; write {name}@COMMIT (the 40 hex digits that the "
            f"model's page shows under its files), or download it and name the folder"
        )
