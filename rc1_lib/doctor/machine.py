"""The machine: what the environment brings in, what the engine needs, disk and memory."""

from __future__ import annotations

from rc1_lib.config.step_metrics import SIGNS_OF_COLLAPSE, measured, unseen
from rc1_lib.doctor.base import base_config
from rc1_lib.doctor.finding import Finding, gib
from rc1_lib.run import Run
from rc1_lib.runtime.libraries import check_proxies, hidden_packages
from rc1_lib.workspace.artifacts import CODE_ROOT
from rc1_lib.workspace.folder import free_bytes as free_disk


def look_at_environment(_: Run) -> Finding:
    """Whether Python finds RC1's own packages, and every proxy can be used."""
    check_proxies()
    if hidden := hidden_packages():
        return Finding(
            f"{', '.join(hidden)}: another package of this name comes first on Python's path",
            f"put {CODE_ROOT} first in PYTHONPATH, or start elsewhere",
        )
    return Finding("Python finds RC1's own packages; every proxy can be used")


def look_at_engine(run: Run) -> Finding:
    """Whether the engine can train this base with this configuration on this device."""
    from rc1_lib.training.device import get_device
    from rc1_lib.training.usable import check_usable

    training = run.config.training
    check_usable(run.config, base_config(run))
    metric = training.early_stop.metric
    ends = "" if metric is None else f"; ends early by {metric}"
    if metric is not None and measured(training.engine, training.strategy) is None:
        ends += ", but the metrics of a custom engine are known only after its first step"
    return Finding(
        f"{training.engine} on {get_device().type}: an adapter of {', '.join(training.adapter.targets)}{ends}"
        f"{_collapse(run)}"
    )


def _collapse(run: Run) -> str:
    """The signs that detect a collapse. A bound on a metric that no step measures has no effect."""
    training, batch_size = run.config.training, run.config.batch_size
    blind = unseen(training.engine, training.strategy, batch_size)
    if blind is None:
        return "; the signs of a collapse are known after the first step of a custom engine"
    seen = ", ".join(name for name in SIGNS_OF_COLLAPSE if name not in blind) or "nothing"
    if not blind:
        return f"; a collapse is detected by {seen}"
    return (
        f"; a collapse is detected by {seen}, but not by {', '.join(blind)}, which a step of {batch_size} with "
        f"{training.engine} does not measure"
    )


def look_at_disk(run: Run) -> Finding:
    """Whether the disk has the room that the gate `resources` wants, into which the checkpoints go."""
    free, least = free_disk(run.workspace.root), run.config.gates.resources.min_free_gb * 2**30
    found = f"{gib(free)} free; gates.resources.min_free_gb wants more than {gib(least)}"
    return Finding(
        found,
        ""
        if free > least
        else "free some space, put the workspace on another disk with --workspace, or keep fewer checkpoints "
        "(training.checkpoints.keep_last, keep_every)",
    )


def look_at_memory(run: Run) -> Finding:
    """Whether what a training takes at least has room; by the same figures it is refused."""
    from rc1_lib.training.api import Setup
    from rc1_lib.training.device import get_device
    from rc1_lib.training.memory import free_bytes
    from rc1_lib.training.ranks.shards import processes_of
    from rc1_lib.training.usable import check_memory, check_warm_start
    from rc1_lib.training.warm_start import warm_start_due

    device, processes = get_device(), processes_of(run.config.training)
    shape = base_config(run)
    if warm_start_due(run):
        check_warm_start(shape, device)
    parts = check_memory(Setup.of_run(run.config, run.config.base_model, run.config.seeds[0]), shape, device, processes)
    free = free_bytes(device)
    room = "free memory unknown" if free is None else f"{gib(free)} free"
    return Finding(
        f"{room} ({device.type}); at least {gib(sum(parts.values()))} needed by each of {processes} process"
        f"{'es' if processes > 1 else ''}; dialogues take more"
    )
