"""The ledger `reports/ckpt_manifest.jsonl`: a line with the fingerprint of every checkpoint, just before it appears.

It also names the code that wrote each one. In the checkpoint itself a commit would make equal states differ. A removed
checkpoint gets a second line, so its fingerprint stays on record.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.provenance.git import code_words
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, step_of
from rc1_lib.workspace.artifacts import now


def record(written: Path, checkpoint: Path, ledger: Path) -> None:
    """Add the line of a checkpoint, unless there is one already.

    Its writer does so before the checkpoint appears, so that no kill leaves one without a line: such a one would look
    like another checkpoint that was put in its place.

    Args:
        written: the temporary folder that becomes `checkpoint`.
    """
    content, name = (written / NAME).read_bytes(), _name(checkpoint, ledger)
    sha256 = hashlib.sha256(content).hexdigest()
    if any((entry.get("path"), entry.get("sha256")) == (name, sha256) for entry in read_ledger(ledger)):
        return
    files = {file: entry["sha256"] for file, entry in orjson.loads(content)["files"].items()}
    entry = {"step": step_of(checkpoint), "path": name, "sha256": sha256, "files": files, "written": now()}
    _append(ledger, {**entry, "code": code_words()})


def written_by(checkpoint: Path, ledger: Path) -> str | None:
    """Return the code version that wrote a checkpoint; None if the ledger does not name it."""
    sha256 = fingerprint(checkpoint)
    named = [entry["code"] for entry in read_ledger(ledger) if entry.get("sha256") == sha256 and "code" in entry]
    return str(named[0]) if named else None


def record_removal(checkpoint: Path, ledger: Path) -> None:
    """Record that a checkpoint is about to be removed, unless there is such a line already."""
    sha256 = fingerprint(checkpoint)
    if not _has_removal(checkpoint, sha256, ledger):
        entry = {"step": step_of(checkpoint), "path": _name(checkpoint, ledger), "sha256": sha256, "removed": now()}
        _append(ledger, entry)


def was_removed(checkpoint: Path, sha256: str | None, ledger: Path) -> bool:
    """Whether the retention rule removed the checkpoint with this fingerprint (None: with any)."""
    return not checkpoint.exists() and _has_removal(checkpoint, sha256, ledger)


def _has_removal(checkpoint: Path, sha256: str | None, ledger: Path) -> bool:
    name = _name(checkpoint, ledger)
    return any(
        "removed" in entry and entry.get("path") == name and sha256 in (None, entry.get("sha256"))
        for entry in read_ledger(ledger)
    )


def read_ledger(ledger: Path) -> list[dict[str, Any]]:
    """Return the complete lines of the ledger, oldest first, without a last line that a kill cut off.

    Raises:
        CheckpointError: if a line is not a JSON object.
    """
    if not ledger.exists():
        return []
    content = ledger.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    refusal = CheckpointError(
        f"{ledger}: found a line that is not a JSON object; move the file away to begin a new one"
    )
    try:
        entries = [orjson.loads(line) for line in whole.splitlines() if line.strip()]
    except ValueError:
        raise refusal from None
    if not all(isinstance(entry, dict) for entry in entries):
        raise refusal
    return entries


def check_in_ledger(checkpoint: Path, ledger: Path) -> None:
    """Reject a checkpoint that replaced another one and brought its own manifest.

    A checkpoint without any line is accepted: it may have been copied here without the ledger.

    Raises:
        CheckpointError: if the ledger has only other fingerprints for this path, or cannot be read.
    """
    name, found = _name(checkpoint, ledger), fingerprint(checkpoint)
    entered = [str(entry.get("sha256")) for entry in read_ledger(ledger) if entry.get("path") == name]
    if entered and found not in entered:
        raise CheckpointError(
            f"{checkpoint / NAME}: has SHA-256 {found[:12]}, but {ledger.name} lists {entered[-1][:12]} for {name}, so "
            f"another checkpoint was put in its place; use another one"
        )


def _name(checkpoint: Path, ledger: Path) -> str:
    """Return the checkpoint's path relative to the workspace, the parent of the ledger's folder."""
    root, path = ledger.resolve().parent.parent, checkpoint.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else f"{path.parent.name}/{path.name}"


def _append(ledger: Path, entry: dict[str, Any]) -> None:
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with ledger.open("a+b") as stream:
        stream.seek(0)
        content = stream.read()
        stream.truncate(content.rfind(b"\n") + 1)
        stream.write(orjson.dumps(entry) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
