"""Which checkpoints a run writes and keeps: a retention rule, and a copy of those whose evaluation passed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.config.run_config import RunConfig
from rc1_lib.training import control
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import LATEST, CheckpointError
from rc1_lib.training.checkpoint.ledger import record_removal, was_removed
from rc1_lib.training.checkpoint.manifest import (
    NAME,
    fingerprint,
    folder_name,
    read_verified,
    resolve,
    settle,
    step_of,
    steps,
)
from rc1_lib.training.checkpoint.save_load import STATE
from rc1_lib.workspace.artifacts import Workspace

BEST = "best"
_SHA256 = re.compile(rb"\b[0-9a-f]{64}\b")


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Which checkpoints of a run are kept. The others may be removed.

    Attributes:
        last: keep this many of the newest.
        every: also keep those of every multiple of this many steps; None: of none.
    """

    last: int
    every: int | None = None

    def __post_init__(self) -> None:
        """Reject a rule that would remove the newest."""
        assert self.last >= 1, f"last is {self.last}, expected at least 1"
        assert self.every is None or self.every >= 1, f"every is {self.every}, expected at least 1"

    def kept(self, there: Collection[int]) -> set[int]:
        """Return the steps of `there` to keep."""
        on_the_way = {step for step in there if self.every is not None and step % self.every == 0}
        return set(sorted(there)[-self.last :]) | on_the_way


def keep_rule_of(config: RunConfig) -> KeepRule | None:
    """Return the configured rule. None keeps everything."""
    section = config.training.checkpoints
    if section.keep_last is None:
        return None
    return KeepRule(section.keep_last, section.keep_every)


def prune(folder: Path, ledger: Path, rule: KeepRule) -> list[Path]:
    """Remove the checkpoints that the rule does not keep, and return them.

    These are never removed: checkpoints whose fingerprint is in a report next to the ledger; steps beyond `latest`,
    which belong to a run that this one branched off from; `best/`; and whatever has no manifest. Nothing is removed
    unless the checkpoint of `latest` is intact, byte for byte. After a kill each checkpoint is whole or has lost its
    name, and the ledger has the line of its removal first.

    Args:
        ledger: `reports/ckpt_manifest.jsonl`.

    Raises:
        CheckpointError: if `latest` does not point to an intact checkpoint of this folder, or another process writes.
    """
    with atomic_folder.write_lock(folder):
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
    """Return the step that `latest` points to."""
    link = folder / LATEST
    target = link.resolve()
    step = step_of(target)
    if step is None or target.parent != folder.resolve() or not (target / NAME).is_file():
        raise CheckpointError(
            f"{link}: does not point to a checkpoint of {folder.name}, so no other one is removed; point it to the "
            f"newest (ln -sfn step_XXXXX {link})"
        )
    return step


def _named(reports: Path) -> set[str]:
    """Return every SHA-256 that a report mentions."""
    return {found.decode() for path in reports.glob("*.json") for found in _SHA256.findall(path.read_bytes())}


def keep_permanently(checkpoint: Path, folder: Path, expected: str | None = None) -> Path:
    """Copy a checkpoint whose evaluation passed into `folder/best`, from which nothing is ever removed.

    The same checkpoint is copied only once. Another one of the same step gets a number after its name.

    Args:
        checkpoint: its folder.
        expected: fingerprint of the evaluated checkpoint, if the caller knows it.

    Returns:
        The copy.

    Raises:
        CheckpointError: if the checkpoint is damaged, has another fingerprint or belongs to a control, or if another
            process writes into `folder/best`.
    """
    settle(checkpoint.parent)
    wanted = expected or fingerprint(checkpoint)
    contents = read_verified(checkpoint, wanted)
    if STATE in contents:
        check_real_run(orjson.loads(contents[STATE]), checkpoint.name)
    best = folder / BEST
    with atomic_folder.write_lock(best):
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


def check_real_run(facts: Mapping[str, Any], name: str) -> None:
    """Check that a real run wrote a checkpoint. The policy of a control is never kept, exported or released.

    Raises:
        CheckpointError: if a control wrote it.
    """
    if facts.get(control.FACT) is not None:
        raise CheckpointError(
            f"{name}: trained on an uninformative reward (rc1 train --control {facts[control.FACT]}) to check the "
            f"evaluation, so it must not be kept; use a checkpoint of a real run"
        )


def resolve_named(name: str, folder: Path, workspace: Workspace, ledger: Path, rule: str, instead: str) -> Path:
    """Return the checkpoint that a user named.

    Args:
        name: `latest`, a step of `folder`, or a path, relative to the workspace or as written.
        workspace: where relative paths start.
        rule: the retention settings, for the message about a removed checkpoint.
        instead: what to do about a removed checkpoint.

    Raises:
        CheckpointError: if it does not exist; the message lists those that do, and says if the rule removed it.
    """
    below = workspace.path(name)
    try:
        return resolve(str(below) if "/" in name and below.exists() else name, folder)
    except CheckpointError:
        gone = folder / folder_name(int(name)) if name.isdecimal() else below
        if not was_removed(gone, None, ledger):
            raise
    there = ", ".join(str(step) for step in steps(folder)) or "none"
    raise CheckpointError(
        f"{gone}: removed after newer ones were saved, by {rule}; steps in {folder}: {there}; {instead}"
    )
