"""What is asked of a training besides its configuration: seeds, a checkpoint to begin at, a control.

A command asks here before it starts a server, and the flow once more, since it may be started by anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rc1_lib.config.engines import ENGINES, PLAYED, ControlKind, names_of
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.run_paths import LEDGER, paths_of

Seeds = Sequence[int] | Literal["all"] | None
"""Some of the configuration's; all of them; or the first."""


def chosen_seeds(run: Run, seeds: Seeds, resume_from: str | None) -> list[int]:
    """The seeds to train.

    Raises:
        ConfigError: for a seed that the configuration, and so the ticket, does not name; or when one checkpoint is to
            be resumed by several seeds.
    """
    known = run.config.seeds
    chosen = list(known) if seeds == "all" else list(dict.fromkeys(seeds or known[:1]))
    unknown = [seed for seed in chosen if seed not in known]
    if unknown:
        raise ConfigError(
            f"seed {unknown[0]} is not in `seeds` ({', '.join(map(str, known))}), which the ticket vouches for; "
            f"take one of them, or add it with --set seeds=[...] and run the preflight"
        )
    if resume_from is not None and len(chosen) > 1:
        raise ConfigError(
            f"--resume-from {resume_from}: names the checkpoint of one run, but {len(chosen)} seeds were asked for; "
            f"name one seed. Without it every run goes on from its own newest checkpoint"
        )
    return chosen


def named_checkpoint(run: Run, seed: int, name: str) -> Path:
    """The checkpoint of a seed's run that a user's word leads to: `latest`, a step, or a path.

    Raises:
        CheckpointError: when there is none.
    """
    from rc1_lib.training.checkpoint.retention import (
        resolve_named,  # brings torch along, which a command has no use for
    )

    kept = run.config.training.checkpoints
    return resolve_named(
        name,
        run.workspace.path(paths_of(run, seed).checkpoints),
        run.workspace,
        run.workspace.path(LEDGER),
        f"training.checkpoints (keep_last is {kept.keep_last}, keep_every {kept.keep_every})",
        "leave out --resume-from, and the run goes on from its newest",
    )


def check_control(
    run: Run, kind: ControlKind, resume_from: str | None, *, evaluate: bool, start_over: bool = False
) -> None:
    """Refuse what a control has no use for, and a run of which nothing that is learned is scored.

    Raises:
        ConfigError: naming the flag.
    """
    training = run.config.training
    if not training.plays:
        raise ConfigError(
            f"--control: {training.engine} learns from {training.strategy}, which carry no reward, so a reward without "
            f"information would change nothing; choose {' or '.join(names_of(ENGINES, *PLAYED))}"
        )
    flags = {"--resume-from": resume_from is not None, "--start-over": start_over, "--no-evaluate": not evaluate}
    if given := [flag for flag, is_given in flags.items() if is_given]:
        raise ConfigError(
            f"--control {kind}: trains a few steps and always evaluates; it resumes by itself and replaces an older "
            f"control run; leave out {', '.join(given)}"
        )
