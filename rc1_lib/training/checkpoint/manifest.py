"""A checkpoint's name and manifest: which one a user means by `latest`, a step or a path, and what belongs to it.

The manifest has the size and SHA-256 of every file. Its own SHA-256 is the checkpoint's fingerprint.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.resource_errors import shortage
from rc1_lib.workspace.file_hashes import sha256_file
from rc1_lib.workspace.input_files import read_regular

NAME = "manifest.json"
FORMAT = 2


class NoCheckpointError(CheckpointError):
    """A checkpoint that a user names and that is not there."""


def folder_name(step: int) -> str:
    """`step_00012` for step 12; longer numbers keep all their digits."""
    assert step >= 0, f"step {step}"
    return f"step_{step:05d}"


def step_of(path: Path) -> int | None:
    """The step that a folder's name gives, or None when it is no checkpoint's name."""
    return None if path.suffix else step_of_kept(path)


def step_of_kept(path: Path) -> int | None:
    """As `step_of`, for one kept for good: its name may have a number after it, as in `step_00012.2`."""
    match = atomic_folder.CHECKPOINTS.fullmatch(path.name)
    return int(match[1]) if match else None


def steps(folder: Path) -> dict[int, Path]:
    """Step -> checkpoint in `folder`, ascending."""
    found = [(step_of(path), path) for path in folder.glob("step_*") if path.is_dir()]
    return dict(sorted((step, path) for step, path in found if step is not None))


def resolve(name: str | int, folder: Path) -> Path:
    """The checkpoint that `name` means: `latest`, a step's number, or a path (a link is followed).

    Raises:
        NoCheckpointError: when there is none, saying which there are.
    """
    settle(folder)
    text = str(name)
    if text == atomic_folder.LATEST:
        found = folder / atomic_folder.LATEST
    elif text.isdecimal():
        found = folder / folder_name(int(text))
    else:
        found = Path(text)
        settle(found.parent)
    if not (found / NAME).is_file():
        there = ", ".join(str(step) for step, path in steps(folder).items() if (path / NAME).is_file()) or "none"
        what = (
            f"has no {NAME}, so it is no checkpoint that RC1 finished" if found.is_dir() else "there is no checkpoint"
        )
        raise NoCheckpointError(f"{found}: {what}; steps in {folder}: {there}; name one of them")
    return found.resolve()


def settle(folder: Path) -> None:
    """Undo a replacement of a checkpoint that was killed half way. Nothing else in `folder` is touched."""
    if folder.is_dir() and atomic_folder.needs_recovery(folder):
        with atomic_folder.alone(folder):
            atomic_folder.recover(folder)


def write_manifest(folder: Path, step: int) -> None:
    """Write `manifest.json` over all files that lie in `folder`. It names no time and no place."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for path in sorted(folder.iterdir())
        if path.name != NAME
    }
    body = {"format": FORMAT, "step": step, "files": files}
    (folder / NAME).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def fingerprint(checkpoint: Path) -> str:
    """SHA-256 of the manifest, in hex: equal exactly where all files are equal.

    Raises:
        RC1Error: when there is no manifest.
    """
    return sha256_file(checkpoint / NAME)


def read_verified(checkpoint: Path, expected: str | None = None) -> dict[str, bytes]:
    """File name -> bytes of a checkpoint, every byte checked against the manifest.

    Args:
        checkpoint: its folder.
        expected: the fingerprint that it has to have, where the caller knows it.

    Raises:
        CheckpointError: naming the file that is missing, altered or foreign.
    """
    files = _files(checkpoint, expected)
    contents = {name: _read(checkpoint / name, str(entry["sha256"])) for name, entry in files.items()}
    foreign = sorted(path.name for path in checkpoint.iterdir() if path.name not in {NAME, *files})
    if foreign:
        raise CheckpointError(
            f"{checkpoint / foreign[0]}: does not belong to this checkpoint (its manifest does not name it); "
            f"move it away"
        )
    return contents


def _files(checkpoint: Path, expected: str | None) -> dict[str, Any]:
    path = checkpoint / NAME
    try:
        content = read_regular(path)
    except OSError as error:
        if shortage(error):
            raise  # says nothing against the checkpoint
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}), so {checkpoint.name} is not a checkpoint that RC1 finished; "
            f"name another one"
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if expected is not None and found != expected:
        raise CheckpointError(
            f"{path}: has SHA-256 {found[:12]}, expected {expected[:12]}: this is another checkpoint of the same name, "
            f"or it was altered; resume from one that is in reports/ckpt_manifest.jsonl"
        )
    try:
        body = orjson.loads(content)
        found_format, files = body["format"], body["files"]
        assert isinstance(body["step"], int) and all(len(entry["sha256"]) == 64 for entry in files.values())
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
        raise CheckpointError(
            f"{path}: is not a checkpoint's manifest (a JSON object with format, step and files); it was altered, "
            f"name another checkpoint"
        ) from None
    if found_format != FORMAT:
        raise CheckpointError(
            f"{path}: has format {found_format}, expected {FORMAT}: another version of RC1 wrote it; use that one, or "
            f"train again"
        )
    return dict(files)


def _read(path: Path, sha256: str) -> bytes:
    """The bytes are hashed as they were read, so that what is checked is what is used."""
    try:
        content = read_regular(path)
    except OSError as error:
        if shortage(error):
            raise  # says nothing against the checkpoint
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}), but the manifest names it: the checkpoint is damaged; "
            f"name another one"
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise CheckpointError(
            f"{path}: has SHA-256 {found[:12]}, the manifest says {sha256[:12]}: the file was altered; "
            f"name another checkpoint"
        )
    return content
