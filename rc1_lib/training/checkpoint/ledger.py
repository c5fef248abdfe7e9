"""The ledger `reports/ckpt_manifest.jsonl`: a line with the fingerprint of every checkpoint that was ever finished.

It also says which code wrote each: in the checkpoint itself a commit would make equal states unequal.
A checkpoint that is removed by the rule has a second line; what it was stays on record.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.gates.machine import code_words
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, step_of, steps
from rc1_lib.workspace.artifacts import now


def record_all(folder: Path, ledger: Path) -> None:
    """Add a line for each checkpoint in `folder` that has none yet: the newest, and one whose writer was killed."""
    known = {(entry.get("path"), entry.get("sha256")) for entry in read_ledger(ledger)}
    for step, path in steps(folder).items():
        name = _name(path, ledger)
        if not (path / NAME).is_file() or (name, fingerprint(path)) in known:
            continue
        content = (path / NAME).read_bytes()
        files = {file: entry["sha256"] for file, entry in orjson.loads(content)["files"].items()}
        sha256 = hashlib.sha256(content).hexdigest()
        entry = {"step": step, "path": name, "sha256": sha256, "files": files, "written": now()}
        _append(ledger, {**entry, "code": code_words()})


def written_by(checkpoint: Path, ledger: Path) -> str | None:
    """Which code wrote a checkpoint; None where no line of its fingerprint says so."""
    sha256 = fingerprint(checkpoint)
    named = [entry["code"] for entry in read_ledger(ledger) if entry.get("sha256") == sha256 and "code" in entry]
    return str(named[0]) if named else None


def record_removal(checkpoint: Path, ledger: Path) -> None:
    """Add the line that says that a checkpoint is about to be removed, unless there is one of the same bytes."""
    sha256 = fingerprint(checkpoint)
    if not _has_removal(checkpoint, sha256, ledger):
        entry = {"step": step_of(checkpoint), "path": _name(checkpoint, ledger), "sha256": sha256, "removed": now()}
        _append(ledger, entry)


def was_removed(checkpoint: Path, sha256: str | None, ledger: Path) -> bool:
    """Whether the checkpoint of this fingerprint, None: of any, is not there because the rule removed it."""
    return not checkpoint.exists() and _has_removal(checkpoint, sha256, ledger)


def _has_removal(checkpoint: Path, sha256: str | None, ledger: Path) -> bool:
    name = _name(checkpoint, ledger)
    return any(
        "removed" in entry and entry.get("path") == name and sha256 in (None, entry.get("sha256"))
        for entry in read_ledger(ledger)
    )


def read_ledger(ledger: Path) -> list[dict[str, Any]]:
    """The whole lines of the ledger, oldest first; empty when there is none. A line that a kill tore is left out.

    Raises:
        CheckpointError: when a line is no JSON.
    """
    if not ledger.exists():
        return []
    content = ledger.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    refusal = CheckpointError(f"{ledger}: holds a line that is no JSON object; move the file away, a new one is begun")
    try:
        entries = [orjson.loads(line) for line in whole.splitlines() if line.strip()]
    except ValueError:
        raise refusal from None
    if not all(isinstance(entry, dict) for entry in entries):
        raise refusal
    return entries


def check_entered(checkpoint: Path, ledger: Path) -> None:
    """Refuse a checkpoint that was put in the place of another one, with a manifest of its own.

    One of which there is no line at all is taken: a kill may have come between the checkpoint and its line.

    Raises:
        CheckpointError: when the ledger knows the place with other fingerprints alone, or cannot be read.
    """
    name, found = _name(checkpoint, ledger), fingerprint(checkpoint)
    entered = [str(entry.get("sha256")) for entry in read_ledger(ledger) if entry.get("path") == name]
    if entered and found not in entered:
        raise CheckpointError(
            f"{checkpoint / NAME}: has SHA-256 {found[:12]}, but {ledger.name} has {entered[-1][:12]} of {name}: "
            f"another checkpoint was put in its place; name another one"
        )


def _name(checkpoint: Path, ledger: Path) -> str:
    """The checkpoint below the workspace (the ledger lies in its `reports`), never a machine's path."""
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
