"""Export the training rows of a workspace with a valid ticket for another trainer, as a folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import yaml

from rc1_lib import __version__
from rc1_lib.extras.exports.columns import FORMS, parquet_of, training_frame, training_rows
from rc1_lib.extras.exports.reward import SETTINGS, TABLE
from rc1_lib.extras.exports.spec import WorldSpec
from rc1_lib.preflight.ticket import check_unchanged, verify_ticket, vouched_by
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.checkpoint.atomic_folder import absent_folder, check_absent

TICKET_COPY = "rc1_ticket.json"
_STAGES = ("ticket", "rows", "files")


def export_for(run: Run, trainer: str, target: Path) -> dict[str, Any]:
    """Write the folder `target`, completely or not at all. The same inputs give the same bytes.

    Args:
        run: a workspace with a valid ticket; limits and prices are those of its training, without the judge's share.
        trainer: one of `FORMS`.
        target: must not exist yet.

    Returns:
        The content of `rc1_ticket.json`: the ticket, and the SHA-256 of every other file.

    Raises:
        TicketError: if the ticket is not valid.
        RC1Error: if `target` exists, or no row can be played.
    """
    check_absent(target)
    ticket = verify_ticket(run)
    report_progress("export", 1, len(_STAGES), "ticket valid")
    run = replace(run, vouched=vouched_by(ticket))
    rows = training_rows(run)
    report_progress("export", 2, len(_STAGES), f"{len(rows):,} rows")
    contents = _table(run, trainer, rows)
    document = {
        "to": trainer,
        "version": __version__,
        "code_sha256": code_sha256(),
        "rows": {"count": len(rows), **_counts(rows)},
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items())},
        "ticket": ticket,
    }
    check_unchanged(run)  # the rows that were read are those that it vouches for
    with absent_folder(target) as folder:
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        (folder / TICKET_COPY).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    report_progress("export", 3, len(_STAGES), f"{len(contents) + 1} files")
    return document


def _counts(rows: Sequence[MeasuredRow]) -> Mapping[str, Mapping[str, int]]:
    tasks, buckets = Counter(row["task"] for row in rows), Counter(str(row["bucket"]) for row in rows)
    return {"by_task": dict(sorted(tasks.items())), "by_difficulty": dict(sorted(buckets.items()))}


def _table(run: Run, trainer: str, rows: Sequence[MeasuredRow]) -> dict[str, bytes]:
    table = parquet_of(FORMS[trainer](training_frame(run, rows)))
    spec = WorldSpec.of(run, hashlib.sha256(table).hexdigest())
    own = {"rows": {"path": TABLE, "sha256": spec.rows_sha256}, **spec.body()}
    contents = {TABLE: table, SETTINGS: orjson.dumps(own, option=orjson.OPT_INDENT_2) + b"\n"}
    if trainer == "verl":
        contents["rc1_loop.yaml"] = _loop(spec)
    return {**contents, **_filled(trainer, spec)}


def _filled(trainer: str, spec: WorldSpec) -> dict[str, bytes]:
    """Return the files that are the same in every export for a trainer, but for the most turns of an episode."""
    most = str(spec.limits.turns).encode()
    return {
        entry.name: entry.read_bytes().replace(b"@VERSION@", __version__.encode()).replace(b"@TURNS@", most)
        for entry in (files(__package__) / "files" / trainer).iterdir()
        if entry.is_file()
    }


def _loop(spec: WorldSpec) -> bytes:
    """Return verl's list of agent loops, with the limits of an episode."""
    loop = "rc1_lib.extras.exports.verl_loop.WorldLoop"
    listed = [{"name": "rc1", "_target_": loop, "limits": spec.body()["limits"]}]
    return yaml.safe_dump(listed, sort_keys=False).encode()
