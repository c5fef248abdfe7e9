"""Disk space for all checkpoints that the configuration keeps, by the shapes of the trained weights."""

from __future__ import annotations

from rc1_lib.config.engines import ENGINES, adapts_head, own_name
from rc1_lib.config.run_config import RunConfig
from rc1_lib.doctor.base_files import BaseFiles, read_base
from rc1_lib.doctor.finding import Finding, gib
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.kept_checkpoints import most_at_once
from rc1_lib.training.run_paths import SFT, paths_of
from rc1_lib.workspace.folder import free_bytes

FLOAT = 4
"""Bytes of a trained number, of each of its two AdamW moments, and of a weight of the warm start: all are fp32."""
_MOMENTS = 2
_REST = 192 * 2**10
"""Bytes for everything else of a checkpoint (at the shipped size 80,000 to 130,000): names, the optimizer's plan,
positions in the pool, the states of generators, the manifest."""


def trained_parameters(config: RunConfig, base: BaseFiles) -> int:
    """How many numbers are trained: two LoRA matrices for each target layer, and PPO's value head.

    Raises:
        ConfigError: when a target names no layer of the base.
    """
    adapter = config.training.adapter
    layers = {target: _layers(base, target) for target in adapter.targets}
    strange = [target for target, found in layers.items() if not found]
    if strange:
        raise ConfigError(f"training.adapter.targets: {', '.join(strange)} names no layer of {base.folder.name}")
    lora = sum(adapter.rank * sum(shape) for found in layers.values() for shape in found)
    has_values = "ppo" in ENGINES[own_name(config.training.engine)].sections
    return lora + (base.hidden_size**2 + 2 * base.hidden_size + 1 if has_values else 0)


def _layers(base: BaseFiles, target: str) -> list[tuple[int, ...]]:
    """The shapes of the layers that a target names. A head tied to the embedding has no weight in the files."""
    found = [shape for name, shape in base.shapes.items() if f".{name}".endswith(f".{target}.weight")]
    if found or not adapts_head([target]):
        return found
    text = base.configuration().get_text_config()
    return [(text.vocab_size, text.hidden_size)] if text.tie_word_embeddings else []


def checkpoint_bytes(config: RunConfig, base: BaseFiles) -> int:
    """Bytes of a checkpoint: the trained numbers, their optimizer's moments, and a small rest."""
    return trained_parameters(config, base) * FLOAT * (1 + _MOMENTS) + _REST


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
