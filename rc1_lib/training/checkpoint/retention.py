"""Which checkpoints stay: the last k, the best k, and for good those whose evaluation passed."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

import orjson

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, read_verified
from rc1_lib.training.checkpoint.names import LATEST, settle, step_of, steps
from rc1_lib.training.checkpoint.save import STATE
from rc1_lib.training.real_run import check_real_run

BEST = "best"


def kept(there: Collection[int], last: int, best: int, scores: Mapping[int, float]) -> set[int]:
    """The steps that stay: the `last` newest and the `best` with the highest scores (the newer one of a tie)."""
    assert last >= 1, "at least the newest checkpoint stays"
    scored = sorted((step for step in there if step in scores), key=lambda step: (scores[step], step), reverse=True)
    return set(sorted(there)[-last:]) | set(scored[:best])


def prune(folder: Path, last: int, best: int, scores: Mapping[int, float]) -> list[int]:
    """Remove checkpoints that `kept` does not name, and say which.

    Steps beyond the one that `latest` leads to are left alone: they belong to a run that this one branched off from,
    and are not this one's to remove. `best/` is never touched.

    Raises:
        CheckpointError: while another process writes there.
    """
    with atomic_folder.alone(folder):
        atomic_folder.recover(folder)
        newest = step_of((folder / LATEST).resolve())
        there = {step: path for step, path in steps(folder).items() if newest is not None and step <= newest}
        gone = sorted(set(there) - kept(there, last, best, scores)) if there else []
        for step in gone:
            atomic_folder.remove(there[step])
    return gone


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
