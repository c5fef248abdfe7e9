"""Names and manifests of checkpoints. A user names one by `latest`, a step or a path.

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
    """The checkpoint that a user named does not exist."""


def folder_name(step: int) -> str:
    """Return `step_00012` for step 12. Numbers with more than five digits are not cut."""
    assert step >= 0, f"step {step}"
    return f"step_{step:05d}"


def step_of(path: Path) -> int | None:
    """Return the step in a folder's name, or None if it is not a checkpoint's name."""
    return None if path.suffix else step_of_kept(path)


def step_of_kept(path: Path) -> int | None:
    """Do as `step_of`, but also accept the name of a permanently kept checkpoint, such as `step_00012.2`."""
    match = atomic_folder.CHECKPOINTS.fullmatch(path.name)
    return int(match[1]) if match else None


def steps(folder: Path) -> dict[int, Path]:
    """Map steps to checkpoints in `folder`, ascending."""
    found = [(step_of(path), path) for path in folder.glob("step_*") if path.is_dir()]
    return dict(sorted((step, path) for step, path in found if step is not None))


def resolve(name: str | int, folder: Path) -> Path:
    """Return the checkpoint that `name` means: `latest`, a step's number, or a path (links are followed).

    Raises:
        NoCheckpointError: if it does not exist; the message lists those that do.
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
        what = f"no {NAME}, so not a finished checkpoint of RC1" if found.is_dir() else "no such checkpoint"
        raise NoCheckpointError(f"{found}: {what}; steps in {folder}: {there}; name one of them")
    return found.resolve()


def settle(folder: Path) -> None:
    """Finish or undo the replacement of a checkpoint that a kill interrupted. Nothing else in `folder` changes."""
    if folder.is_dir() and atomic_folder.needs_recovery(folder):
        with atomic_folder.write_lock(folder):
            atomic_folder.recover(folder)


def write_manifest(folder: Path, step: int) -> None:
    """Write `manifest.json` of all files in `folder`.

    It has no times or paths, so equal states have equal manifests.
    """
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for path in sorted(folder.iterdir())
        if path.name != NAME
    }
    body = {"format": FORMAT, "step": step, "files": files}
    (folder / NAME).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def fingerprint(checkpoint: Path) -> str:
    """Return the SHA-256 of the manifest in hex. It is equal exactly if all files are equal.

    Raises:
        RC1Error: if there is no manifest.
    """
    return sha256_file(checkpoint / NAME)


def read_verified(checkpoint: Path, expected: str | None = None) -> dict[str, bytes]:
    """Read all files of a checkpoint, by name, and check every byte against the manifest.

    Args:
        checkpoint: its folder.
        expected: its fingerprint, if the caller knows it.

    Raises:
        CheckpointError: naming a file that is missing, altered, or not in the manifest.
    """
    files = _files(checkpoint, expected)
    contents = {name: _read(checkpoint / name, str(entry["sha256"])) for name, entry in files.items()}
    foreign = sorted(path.name for path in checkpoint.iterdir() if path.name not in {NAME, *files})
    if foreign:
        raise CheckpointError(
            f"{checkpoint / foreign[0]}: not in the checkpoint's manifest, so it does not belong there; move it away"
        )
    return contents


def _files(checkpoint: Path, expected: str | None) -> dict[str, Any]:
    path = checkpoint / NAME
    try:
        content = read_regular(path)
    except OSError as error:
        if shortage(error):
            raise  # not the checkpoint's fault
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}), so {checkpoint.name} is not a finished checkpoint of RC1; use "
            f"another one"
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if expected is not None and found != expected:
        raise CheckpointError(
            f"{path}: has SHA-256 {found[:12]}, expected {expected[:12]}: this is another checkpoint of the same name, "
            "or it was altered; resume from one that is in reports/ckpt_manifest.jsonl"
        )
    try:
        body = orjson.loads(content)
        found_format, files = body["format"], body["files"]
        assert isinstance(body["step"], int) and all(len(entry["sha256"]) == 64 for entry in files.values())
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
        raise CheckpointError(
            f"{path}: not a valid manifest of a checkpoint (expected a JSON object with format, step and files); it "
            "was altered, use another checkpoint"
        ) from None
    if found_format != FORMAT:
        raise CheckpointError(
            f"{path}: has format {found_format}, expected {FORMAT}, so another version of RC1 wrote it; use that "
            "version, or train again"
        )
    return dict(files)


def _read(path: Path, sha256: str) -> bytes:
    """Read a file and check the SHA-256 of the bytes that are then used."""
    try:
        content = read_regular(path)
    except OSError as error:
        if shortage(error):
            raise  # not the checkpoint's fault
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}), but the manifest lists it, so the checkpoint is damaged; use "
            f"another one"
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise CheckpointError(
            f"{path}: has SHA-256 {found[:12]}, but the manifest lists {sha256[:12]}, so the file was altered; use "
            "another checkpoint"
        )
    return content
