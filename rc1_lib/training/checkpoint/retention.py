"""Which checkpoints a run writes and which stay: removing by a rule, keeping for good what passed its evaluation."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
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
    """Which checkpoints of a run stay; the others may go.

    Attributes:
        last: so many of the newest.
        every: and those of every multiple of this many steps; None: of none.
        always: and those of these steps.
    """

    last: int
    every: int | None = None
    always: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Refuses a rule that would remove the newest."""
        assert self.last >= 1, f"the last {self.last}"
        assert self.every is None or self.every >= 1, f"every {self.every} steps"

    def kept(self, there: Collection[int]) -> set[int]:
        """The steps of `there` that stay."""
        on_the_way = {step for step in there if self.every is not None and step % self.every == 0}
        return set(sorted(there)[-self.last :]) | on_the_way | (self.always & set(there))


def steps_between(config: RunConfig) -> list[int]:
    """The steps between start and end that the evaluation looks at: ends of segments, evenly spread."""
    training = config.training
    ends = (config.steps - 1) // training.segment_steps
    count = min(training.held_out.between.checkpoints, ends)
    return [training.segment_steps * round((place + 1) * (ends + 1) / (count + 1)) for place in range(count)]


def keep_rule_of(config: RunConfig) -> KeepRule | None:
    """What stays of a run: what its section says, and what its evaluation will ask for. None: everything."""
    section = config.training.checkpoints
    if section.keep_last is None:
        return None
    return KeepRule(section.keep_last, section.keep_every, frozenset({*steps_between(config), config.steps}))


def count_saved(config: RunConfig) -> int:
    """How many checkpoints a run writes: at every multiple of either size, and of the last step.

    Those that `every_minutes` adds hang on how fast steps are, and are not among them.
    """
    sizes, steps = _sizes(config), config.steps
    multiples = sum(steps // size for size in sizes) - steps // math.lcm(*sizes)
    return multiples + (0 if any(steps % size == 0 for size in sizes) else 1)


def most_at_once(config: RunConfig) -> int:
    """How many checkpoints a run has at most: all, or what the rule leaves at the end and the one that comes next."""
    saved, rule = count_saved(config), keep_rule_of(config)
    if rule is None or rule.last >= saved:
        return saved
    named = rule.always.union(islice(_newest_first(config), rule.last))
    every = rule.every or config.steps + 1
    return min(saved, config.steps // every + sum(step % every != 0 for step in named) + 1)


def _sizes(config: RunConfig) -> tuple[int, int]:
    return config.training.checkpoints.every_steps, config.training.segment_steps


def _newest_first(config: RunConfig) -> Iterator[int]:
    """The steps that are saved, from the last one down."""
    steps = config.steps
    multiples = (range(steps - steps % size, 0, -size) for size in _sizes(config))
    return (step for step, _ in groupby(merge([steps], *multiples, reverse=True)))


def prune(folder: Path, ledger: Path, rule: KeepRule) -> list[Path]:
    """Remove the checkpoints that the rule does not keep, and say which.

    One that a report next to the ledger names by its fingerprint stays. Nothing goes unless what `latest` leads to is
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

    The same checkpoint a second time is not copied again; another one of the same step gets a number after its name.

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


def check_real_run(facts: Mapping[str, Any], name: str) -> None:
    """Check that a real run wrote a checkpoint: a policy of a control is never kept, exported or released.

    Args:
        facts: of the checkpoint.
        name: of the checkpoint, for the error.

    Raises:
        CheckpointError: when a control wrote it.
    """
    if facts.get(control.FACT) is not None:
        raise CheckpointError(
            f"{name}: was trained on a reward without information (rc1 train --control {facts[control.FACT]}) to check "
            f"the evaluation, and is no policy to keep; take a checkpoint of a real run"
        )


def resolve_named(name: str, folder: Path, workspace: Workspace, ledger: Path, rule: str, instead: str) -> Path:
    """What a user's name leads to.

    Args:
        name: `latest`, a step of `folder`, or a path, below the workspace or as written.
        folder: where the run's checkpoints lie.
        workspace: that paths are looked for in.
        ledger: of its checkpoints.
        rule: the keys that say which checkpoints stay, and what they are now, for whoever names one that did not.
        instead: what to do then.

    Raises:
        CheckpointError: when there is none, saying which there are, and by what it went if the rule removed it.
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
        f"{gone}: was removed when newer ones had been saved, by {rule}; steps in {folder}: {there}; {instead}"
    )
