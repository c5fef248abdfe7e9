"""Check the files of a base against the record of how it was made."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.errors import ConfigError
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.file_hashes import sha256_file

RECORD = "base.json"


def check_recorded(folder: Path) -> None:
    """Check that a base's files match the SHA-256 values in its record. Models without a record are not checked.

    Raises:
        ConfigError: if the record cannot be read, or a file is missing or differs.
    """
    path = folder / RECORD
    if not path.is_file():
        return
    try:
        files = dict(read_json(path)["files"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{path}: not a valid record of a base; restore the folder, or remove this file if it is your own model"
        ) from None
    for name, wanted in files.items():
        if not (folder / name).is_file():
            raise ConfigError(f"{folder / name}: not found, but {RECORD} lists it; restore the file")
        if sha256_file(folder / name) != wanted:
            raise ConfigError(
                f"{folder / name}: its SHA-256 differs from {RECORD}; restore the file, or remove "
                f"{RECORD} if this is your own model"
            )
