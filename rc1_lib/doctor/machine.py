"""The machine: writable folders, what the engine needs, tested package versions, and the environment."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path

from rc1_lib.config.step_metrics import SIGNS_OF_COLLAPSE, measured, unseen
from rc1_lib.doctor.base_files import read_base
from rc1_lib.doctor.finding import Finding, gib
from rc1_lib.run import Run
from rc1_lib.runtime.libraries import check_proxies, hidden_packages
from rc1_lib.workspace.artifacts import CODE_ROOT, INSTALLED, PROJECT_ROOT
from rc1_lib.workspace.folder import nearest
from rc1_lib.workspace.state import state_of

_WRITTEN = ("data", "reports", "logs", "checkpoints", "configs")
_CONSTRAINTS = "constraints.txt"
_SHOWN = 4


def look_at_environment(_: Run) -> Finding:
    """Whether Python finds RC1's own packages, and every proxy can be used."""
    check_proxies()
    if hidden := hidden_packages():
        return Finding(
            f"{', '.join(hidden)}: another package of this name comes first on Python's path",
            f"put {CODE_ROOT} first in PYTHONPATH, or start elsewhere",
        )
    return Finding("Python finds RC1's own packages; every proxy can be used")


def look_at_folders(run: Run) -> Finding:
    """Whether all folders that a run writes to are writable."""
    state = state_of(run.workspace.root)
    written = {**{name: run.workspace.path(name) for name in _WRITTEN}, "the Prefect server's folder": state}
    faults = {name: fault for name, path in written.items() if (fault := _why_not_writable(path))}
    if not faults:
        return Finding(f"{', '.join(_WRITTEN)} below {run.workspace.root}; {state}")
    return Finding(
        "; ".join(f"{name}: {fault}" for name, fault in faults.items()),
        "move the file away or change the permissions, or name another --workspace",
    )


def _why_not_writable(path: Path) -> str:
    place = nearest(path)
    if not place.is_dir():
        return f"{place} is not a folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written"


def look_at_engine(run: Run) -> Finding:
    """Whether the engine can train this base with this configuration on this device."""
    from rc1_lib.training.device import get_device
    from rc1_lib.training.usable import check_usable

    training = run.config.training
    check_usable(run.config, read_base(run).configuration())
    metric = training.early_stop.metric
    ends = "" if metric is None else f"; ends early by {metric}"
    if metric is not None and measured(training.engine, training.strategy) is None:
        ends += ", but the metrics of a custom engine are known only after its first step"
    return Finding(
        f"{training.engine} on {get_device().type}: an adapter of {', '.join(training.adapter.targets)}{ends}"
        f"{_collapse(run)}"
    )


def _collapse(run: Run) -> str:
    """The signs that detect a collapse. A limit on a metric that no step measures has no effect."""
    training, batch_size = run.config.training, run.config.batch_size
    bounds = [name for name in SIGNS_OF_COLLAPSE if getattr(training.collapse, name) is not None]
    blind = unseen(bounds, training.engine, training.strategy, batch_size)
    if blind is None:
        return "; the signs of a collapse are known after the first step of a custom engine"
    seen = ", ".join(name for name in bounds if name not in blind) or "nothing"
    if not blind:
        return f"; a collapse is detected by {seen}"
    return (
        f"; a collapse is detected by {seen}, but not by {', '.join(blind)}, which a step of {batch_size} with "
        f"{training.engine} does not measure"
    )


def look_at_memory(run: Run) -> Finding:
    """Whether what a training takes at least has room; by the same figures it is refused."""
    from rc1_lib.training.api import Setup
    from rc1_lib.training.device import get_device
    from rc1_lib.training.memory import free_bytes
    from rc1_lib.training.ranks.processes import processes_of
    from rc1_lib.training.usable import check_memory, check_warm_start
    from rc1_lib.training.warm_start import warm_start_due

    device, processes = get_device(), processes_of(run.config.training)
    shape = read_base(run).configuration()
    if warm_start_due(run):
        check_warm_start(shape, device)
    parts = check_memory(Setup.of_run(run.config, run.config.base_model, run.config.seeds[0]), shape, device, processes)
    free = free_bytes(device)
    room = "free memory unknown" if free is None else f"{gib(free)} free"
    return Finding(
        f"{room} ({device.type}); at least {gib(sum(parts.values()))} needed by each of {processes} process"
        f"{'es' if processes > 1 else ''}; dialogues take more"
    )


def look_at_versions(_: Run) -> Finding:
    """Whether the installed packages are the tested versions."""
    pinned = _pins(PROJECT_ROOT / _CONSTRAINTS)
    told = (one.metadata for one in distributions())  # read once: each access to a name or version parses it again
    installed = {_normal(one["Name"]): one["Version"] for one in told}
    with (PROJECT_ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)["project"]
    named = (*project["dependencies"], *project["optional-dependencies"]["train"])
    needed = [_normal(re.split(r"[\[=<>~! ]", one)[0]) for one in named]
    faults = version_faults(pinned, installed, needed)
    if not faults:
        return Finding(f"{sum(name in installed for name in pinned)} packages as {_CONSTRAINTS} has them")
    shown = "; ".join(faults[:_SHOWN]) + (f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else "")
    what = f"'rc1[train]' -c {PROJECT_ROOT / _CONSTRAINTS}" if INSTALLED else f"-e '.[train]' -c {_CONSTRAINTS}"
    return Finding(shown, f"install the tested versions: pip install {what}{'' if INSTALLED else ' (make setup)'}")


def version_faults(pinned: Mapping[str, str], installed: Mapping[str, str], needed: Iterable[str]) -> list[str]:
    """Packages that are missing or not the pinned version; `2.13.0+cpu` is a build of 2.13.0 (PEP 440)."""
    faults = [f"{name} is missing" for name in needed if name not in installed]
    for name, version in pinned.items():
        found = installed.get(name, version)
        if version not in (found, found.partition("+")[0]):
            faults.append(f"{name} {found}, tested with {version}")
    return faults


def _pins(path: Path) -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.split(";")[0].strip().partition("==") for line in lines if "==" in line)
    return {_normal(name): version for name, _, version in pairs}


def _normal(name: str) -> str:
    """A package's name as registries compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
