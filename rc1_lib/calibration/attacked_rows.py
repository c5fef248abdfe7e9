"""Dialogues of adversarial policies on the rows: what no scripted expert writes, but an optimiser would find."""

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
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.file_hashes import sha256_known


def library(run: Run) -> dict[str, Attack]:
    """The policies to play: RC1's own and those in the configuration.

    Raises:
        ConfigError: when a custom policy cannot be read, or has the name of one in the library.
    """
    thresholds = run.config.gates.reward_hacking
    if thresholds.own:
        shown = (f"{path} (SHA-256 {sha256[:12]})" for path, sha256 in own_attacks(run).items())
        report_progress("code of your own", 0, len(thresholds.own), f"runs {', '.join(shown)}")
    own = read_attacks([run.workspace.find(path) for path in thresholds.own])
    taken = sorted(set(own) & set(ATTACKS))
    if taken:
        raise ConfigError(f"gates.reward_hacking.own: the policy '{taken[0]}' exists already; rename the file")
    return {**ATTACKS, **own}


def hedges(attacks: Mapping[str, Attack]) -> list[str]:
    """The names of policies whose answers do not commit to one answer."""
    return [name for name, one in attacks.items() if one.never_right]


def own_attacks(run: Run) -> dict[str, str]:
    """Fingerprints of the custom policies, by path; "" if a file is missing."""
    paths = run.config.gates.reward_hacking.own
    files = {path: run.workspace.find(path) for path in paths}
    return {path: sha256_known(file) if file.is_file() else "" for path, file in files.items()}


def attacked_rows(run: Run, attacks: Mapping[str, Attack], prompts: pl.DataFrame) -> pl.DataFrame:
    """Every prompt once for each policy, with the policy's dialogue instead of the row's; ids are `<id>/<policy>`.

    Raises:
        RowError: when a row lacks a field that the environment needs.
        ConfigError: when a policy does not end its dialogue.
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
    """About `wanted` rows: the first of every task, in proportion to the task's share."""
    share = min(wanted, rows.height) / max(rows.height, 1)
    return rows.filter(pl.int_range(pl.len()).over("task") < (pl.len().over("task") * share).round())


def attack_store(run: Run) -> str:
    """A separate store for a live judge's replies about such dialogues: the preflight's gates read the other log."""
    path = PurePosixPath(run.config.judge.store.path)
    return str(path.with_name(f"{path.stem}.attacks{path.suffix}"))
