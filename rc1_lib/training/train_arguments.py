"""Arguments of a training apart from its configuration: seeds, a checkpoint to resume from, a control.

A command checks them before it starts a server. The flow checks them again, because it can be started without a
command.
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
"""Some of the configured seeds, "all" of them, or None for the first."""


def check_kept(resume_from: str | None, start_over: bool) -> None:
    """Reject a start that would remove the checkpoint from which it resumes.

    Raises:
        ConfigError: if both are wanted.
    """
    if resume_from is not None and start_over:
        raise ConfigError(
            f"--resume-from {resume_from} with --start-over, which removes the checkpoints; give one of them"
        )


def chosen_seeds(run: Run, seeds: Seeds, resume_from: str | None, *, start_over: bool = False) -> list[int]:
    """Return the seeds to train.

    Raises:
        ConfigError: if the configuration, and so the ticket, does not name a seed; if several seeds would resume from
            one checkpoint; or if what is resumed would be removed first.
    """
    known = run.config.seeds
    chosen = list(known) if seeds == "all" else list(dict.fromkeys(seeds or known[:1]))
    unknown = [seed for seed in chosen if seed not in known]
    if unknown:
        raise ConfigError(
            f"seed {unknown[0]} is not in `seeds` ({', '.join(map(str, known))}), which the ticket covers; use one of "
            "them, or add it with --set seeds=[...] and run the preflight again"
        )
    check_kept(resume_from, start_over)
    if resume_from is not None and len(chosen) > 1:
        raise ConfigError(
            f"--resume-from {resume_from}: a checkpoint belongs to one run, but {len(chosen)} seeds were given; give "
            "one seed, or leave out --resume-from, and every run resumes from its own newest checkpoint"
        )
    return chosen


def named_checkpoint(run: Run, seed: int, name: str) -> Path:
    """Return the checkpoint of a seed's run that the user named: `latest`, a step, or a path.

    Raises:
        CheckpointError: if there is none.
    """
    from rc1_lib.training.checkpoint.retention import resolve_named  # imports torch, which is slow

    kept = run.config.training.checkpoints
    return resolve_named(
        name,
        run.workspace.path(paths_of(run, seed).checkpoints),
        run.workspace,
        run.workspace.path(LEDGER),
        f"training.checkpoints (keep_last is {kept.keep_last}, keep_every {kept.keep_every})",
        "leave out --resume-from to resume from its newest",
    )


def has_checkpoints(run: Run, seeds: Sequence[int]) -> bool:
    """Whether each of these seeds has a checkpoint, so that there is something to evaluate, even with few prompts."""
    return all(any(run.workspace.path(paths_of(run, seed).checkpoints).glob("step_*")) for seed in seeds)


def check_control(
    run: Run, kind: ControlKind, resume_from: str | None, *, evaluate: bool, start_over: bool = False
) -> None:
    """Reject flags that a control does not use, and a control whose reward could move no policy.

    Raises:
        ConfigError: naming the flag.
    """
    training = run.config.training
    if not training.plays:
        raise ConfigError(
            f"--control: {training.engine} learns from {training.strategy}, which have no reward, so an uninformative "
            f"reward would change nothing; use {' or '.join(names_of(ENGINES, *PLAYED))}"
        )
    if kind == "constant" and training.group_size > 1:
        raise ConfigError(
            f"--control constant: {training.engine} learns from differences in reward, and a constant one has none; "
            f"use --control random"
        )
    flags = {"--resume-from": resume_from is not None, "--start-over": start_over, "--no-evaluate": not evaluate}
    if given := [flag for flag, is_given in flags.items() if is_given]:
        raise ConfigError(
            f"--control {kind}: trains a few steps and always evaluates; it resumes by itself and replaces an older "
            f"control run; leave out {', '.join(given)}"
        )
