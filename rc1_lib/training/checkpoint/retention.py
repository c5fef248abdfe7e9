"""Removing checkpoints that no rule keeps, and keeping for good those whose evaluation passed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import orjson

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.keep_rule import KeepRule
from rc1_lib.training.checkpoint.ledger import record_removal
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, read_verified
from rc1_lib.training.checkpoint.names import LATEST, settle, step_of, steps
from rc1_lib.training.checkpoint.save import STATE
from rc1_lib.training.checkpoint.state import CheckpointError
from rc1_lib.training.control import check_real_run

BEST = "best"
_SHA256 = re.compile(rb"\b[0-9a-f]{64}\b")


def prune(folder: Path, ledger: Path, rule: KeepRule) -> list[Path]:
    """Remove the checkpoints that the rule does not keep, and say which.

    One that a report beside the ledger names by its fingerprint stays. Nothing goes unless what `latest` leads to is
    whole, byte for byte. Steps beyond it are left alone: they belong to a run that this one branched off from. So are
    `best/` and whatever has no manifest. A kill leaves each checkpoint whole or without its name, and the ledger knows
    of a removal before anything is gone.

    Args:
        folder: where the run's checkpoints lie.
        ledger: `reports/ckpt_manifest.jsonl`.
        rule: what stays.

    Raises:
        CheckpointError: when `latest` leads to no whole checkpoint of this folder, or while another process writes.
    """
    with atomic_folder.alone(folder):
        atomic_folder.recover(folder)
        newest = _newest(folder)
        there = {step: path for step, path in steps(folder).items() if step <= newest and (path / NAME).is_file()}
        doomed = [there[step] for step in sorted(there.keys() - rule.kept(there))]
        if not doomed:
            return []
        named = _named(ledger.parent)
        gone = [path for path in doomed if fingerprint(path) not in named]
        read_verified(there[newest])
        for path in gone:
            record_removal(path, ledger)
            atomic_folder.remove(path)
    return gone


def _newest(folder: Path) -> int:
    """The step that `latest` leads to."""
    link = folder / LATEST
    target = link.resolve()
    step = step_of(target)
    if step is None or target.parent != folder.resolve() or not (target / NAME).is_file():
        raise CheckpointError(
            f"{link}: leads to no checkpoint of {folder.name}, so no other one is removed; let it lead to the newest "
            f"(ln -sfn step_XXXXX {link})"
        )
    return step


def _named(reports: Path) -> set[str]:
    """Every SHA-256 that a report names."""
    return {found.decode() for path in reports.glob("*.json") for found in _SHA256.findall(path.read_bytes())}


def keep_for_good(checkpoint: Path, folder: Path, expected: str | None = None) -> Path:
    """Copy a checkpoint whose evaluation passed into `folder/best`, which is only ever added to.

    The same checkpoint a second time is not copied again; another one of the same step gets a number behind its name.

    Args:
        checkpoint: its folder.
        folder: where the run's checkpoints lie.
        expected: the fingerprint of the one that was evaluated, where the caller knows it.

    Returns:
        The copy.

    Raises:
        CheckpointError: when the checkpoint is damaged, another one or no real run's, or while another process writes
            into `folder/best`.
    """
    settle(checkpoint.parent)
    wanted = expected or fingerprint(checkpoint)
    contents = read_verified(checkpoint, wanted)
    if STATE in contents:
        check_real_run(orjson.loads(contents[STATE]), checkpoint.name)
    best = folder / BEST
    with atomic_folder.alone(best):
        atomic_folder.recover(best)
        target, number = best / checkpoint.resolve().name, 2
        while target.exists():
            if fingerprint(target) == wanted:
                read_verified(target, wanted)
                return target
            target, number = best / f"{checkpoint.resolve().name}.{number}", number + 1
        with atomic_folder.new_folder(target) as temporary:
            for name in contents:
                (temporary / name).write_bytes(contents[name])
            shutil.copyfile(checkpoint / NAME, temporary / NAME)
            read_verified(temporary, wanted)
    return target
