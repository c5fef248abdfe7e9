"""`final_model/`: the exported policy of the latest training whose evaluation passed."""

from __future__ import annotations

import shutil
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.export.checkpoint_export import MANIFEST, export_checkpoint
from rc1_lib.workspace.artifacts import checksum_line, read_json, write_text

FOLDER = "final_model"
_PROMPTS = 32


def write_final_model(run: Run, checkpoint: Path) -> str:
    """Export a checkpoint to `final_model/`, in place of an earlier one, and return that name.

    Args:
        checkpoint: one whose evaluation passed.

    Raises:
        RC1Error: if a folder of this name is not such an export, or the checkpoint cannot be exported.
        ExportMismatchError: if what was written does not match the policy; an earlier export stays.
    """
    target = run.workspace.path(FOLDER)
    if _exported(target) != fingerprint(checkpoint):
        fresh = target.with_name(f".{FOLDER}.new")
        shutil.rmtree(fresh, ignore_errors=True)  # left by a killed process
        export_checkpoint(run, checkpoint, fresh, _PROMPTS)
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    files = read_json(target / MANIFEST)["files"]  # a process may have been killed before it wrote the checksums
    lines = (checksum_line(sha256, f"{FOLDER}/{name}") for name, sha256 in files.items())
    write_text(run.workspace.checksum_path(FOLDER), "".join(lines))
    return FOLDER


def _exported(target: Path) -> str | None:
    """Return the fingerprint of the checkpoint that is exported there; None if nothing is."""
    if not target.exists():
        return None
    try:
        return str(read_json(target / MANIFEST)["checkpoint"]["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        raise RC1Error(f"{target}: is not an export of RC1, so it is not replaced; move it away") from None
