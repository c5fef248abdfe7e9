"""Rows with the dialogues that worthless policies make of them: what no teacher writes, but an optimiser would find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import cast

import polars as pl

from rc1_lib.attacks.library import ATTACKS, Attack
from rc1_lib.attacks.play import played, read_attacks
from rc1_lib.environment.limits import Limits
from rc1_lib.errors import ConfigError
from rc1_lib.records import Row
from rc1_lib.run import Run
from rc1_lib.workspace.file_hashes import sha256_known


def library(run: Run) -> dict[str, Attack]:
    """The policies to be played: RC1's own, and those that the configuration names.

    Raises:
        ConfigError: when a policy of one's own cannot be read, or has the name of one of the library.
    """
    thresholds = run.config.gates.reward_hacking
    own = read_attacks([run.workspace.path(path) for path in thresholds.own])
    taken = sorted(set(own) & set(ATTACKS))
    if taken:
        raise ConfigError(
            f"gates.reward_hacking.own: there is a policy '{taken[0]}' already; give the file another name"
        )
    return {**ATTACKS, **own}


def hedges(attacks: Mapping[str, Attack]) -> list[str]:
    """The names of those whose answers commit to nothing."""
    return [name for name, one in attacks.items() if one.never_right]


def own_attacks(run: Run) -> dict[str, str]:
    """Fingerprints of the policies of one's own, by path; "" where a file is missing."""
    paths = run.config.gates.reward_hacking.own
    files = {path: run.workspace.path(path) for path in paths}
    return {path: sha256_known(file) if file.is_file() else "" for path, file in files.items()}


def attacked_rows(run: Run, attacks: Mapping[str, Attack], prompts: pl.DataFrame) -> pl.DataFrame:
    """Every prompt once for each policy, with its dialogue in the place of the row's own; ids are `<id>/<policy>`.

    Raises:
        RowError: when a row lacks what a dialogue world is made of.
        ConfigError: when a policy does not bring its dialogue to an end.
    """
    limits = Limits.of(run.config.training.limits)
    originals = cast("list[Row]", prompts.to_dicts())
    rows = [
        {**row, "id": f"{row['id']}/{name}"}
        for name, attack in attacks.items()
        for row in played(attack, originals, limits)
    ]
    return pl.DataFrame(rows, schema=prompts.schema)


def first_of_each_task(rows: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """About `wanted` rows, the first of every task in their order, in its share of all rows."""
    share = min(wanted, rows.height) / max(rows.height, 1)
    return rows.filter(pl.int_range(pl.len()).over("task") < (pl.len().over("task") * share).round())


def attack_store(run: Run) -> str:
    """Where a live judge's replies about such dialogues lie: the preflight's gates read the log of the other store."""
    path = PurePosixPath(run.config.judge.store.path)
    return str(path.with_name(f"{path.stem}.attacks{path.suffix}"))
