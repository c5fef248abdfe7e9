"""Disk space for all checkpoints that the configuration keeps, for all its seeds."""

from __future__ import annotations

from rc1_lib.doctor.base_files import BaseFiles, read_base
from rc1_lib.doctor.checkpoint_size import FLOAT, checkpoint_bytes
from rc1_lib.doctor.finding import Finding, gib
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.retention import most_at_once
from rc1_lib.training.run_paths import SFT, paths_of
from rc1_lib.workspace.free_space import free_bytes


def look_at_disk(run: Run) -> Finding:
    """Whether the disk has room for everything that training will keep."""
    config, base = run.config, read_base(run)
    one, count = checkpoint_bytes(config, base), most_at_once(config) + 1  # plus one kept permanently
    missing = max(0, bytes_kept(run, base) - _existing_bytes(run))
    least = config.gates.resources.min_free_gb * 2**30
    free = free_bytes(run.workspace.root)
    found = (
        f"{gib(free)} free; {len(config.seeds)} seeds x {count:,} checkpoints of {one / 2**20:,.1f} MiB: "
        f"{gib(missing)} still to be written; the gate resources requires more than {gib(least)} free"
    )
    if free > max(missing, least):
        return Finding(found)
    return Finding(
        found,
        "free some space, put the workspace on another disk with --workspace, keep fewer checkpoints "
        "(training.checkpoints.keep_last, keep_every), or save less often (every_steps, training.segment_steps)",
    )


def bytes_kept(run: Run, base: BaseFiles) -> int:
    """All checkpoints of all seeds, one of each kept permanently, and the warm start's weights."""
    config = run.config
    checkpoints = len(config.seeds) * (most_at_once(config) + 1) * checkpoint_bytes(config, base)
    return checkpoints + (base.parameters * FLOAT if config.training.warm_start.steps else 0)


def _existing_bytes(run: Run) -> int:
    folders = [run.workspace.path(paths_of(run, seed).checkpoints) for seed in run.config.seeds]
    return sum(
        path.lstat().st_size
        for folder in (*folders, run.workspace.path(SFT))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
