"""Processes that a launcher started together with this one: `accelerate launch`, `torchrun`.

The launcher's environment says this process's rank, and where torch's store is, through which the processes meet.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rc1_lib.errors import RC1Error

if TYPE_CHECKING:
    from rc1_lib.training.ranks.group import Group

_WORLD, _RANK = "WORLD_SIZE", "RANK"
_WORLD_HERE, _RANK_HERE = "LOCAL_WORLD_SIZE", "LOCAL_RANK"
_ADDRESS, _PORT = "MASTER_ADDR", "MASTER_PORT"
_NAMES = (
    _WORLD, _RANK, _WORLD_HERE, _RANK_HERE, _ADDRESS, _PORT,
    "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE",
)  # fmt: skip
_PREFIXES = ("ACCELERATE_", "TORCHELASTIC_")
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Launch:
    """One of the processes that were started together.

    Attributes:
        rank: from 0, which is the first process.
        size: number of processes, at least two.
        local: number among the processes of this machine, which is also the number of its GPU.
    """

    rank: int
    size: int
    local: int


def launch_of(environment: Mapping[str, str]) -> Launch | None:
    """Read the launcher's environment; None without a launcher or if it started only one process.

    Raises:
        RC1Error: if the numbers are invalid, or the launcher started processes on other machines too.
    """
    if _RANK not in environment or _WORLD not in environment:
        return None
    said = {_RANK: environment[_RANK], _WORLD: environment[_WORLD]}
    said |= {_RANK_HERE: environment.get(_RANK_HERE, said[_RANK])}
    said |= {_WORLD_HERE: environment.get(_WORLD_HERE, said[_WORLD])}
    rank, size, local, here = (int(value) if value.isdecimal() else -1 for value in said.values())
    if not 0 <= rank < size or not 0 <= local < here or here != size:
        found = ", ".join(f"{name}={value}" for name, value in said.items())
        raise RC1Error(
            f"the environment has {found}, expected the whole numbers that accelerate launch and torchrun set on one "
            f"machine: RC1 shares a step between processes of one machine only; start rc1 through one of these, or "
            f"unset {_RANK} and {_WORLD}"
        )
    return None if size == 1 else Launch(rank, size, local)


def forget_launch(environment: MutableMapping[str, str]) -> None:
    """Remove the launcher's variables from the environment.

    TRL, transformers and accelerate read them too. They would wait for the other processes to train with them, while
    those wait for this one, or use a precision that only the launcher was given.
    """
    for name in [name for name in environment if name in _NAMES or name.startswith(_PREFIXES)]:
        del environment[name]


def join(launch: Launch, follow: Callable[[Group], None]) -> bool:
    """Take the role that the launcher gave this process. A worker works until the first process ends.

    Args:
        launch: this process's place.
        follow: what a worker does.

    Returns:
        True in the first process, which goes on; False in a worker, when its work is done.

    Raises:
        RC1Error: if there is no GPU left for it, or the others cannot be reached.
    """
    from rc1_lib.training.ranks.group import Group, use_launched
    from rc1_lib.training.resource_errors import LostError

    _take_device(launch.local)
    try:
        group = Group(launch.rank, launch.size)
    except (RuntimeError, ValueError) as error:  # network errors of torch; a variable that it misses
        raise RC1Error(
            f"process {launch.rank + 1} of {launch.size} cannot meet the others at {os.environ.get(_ADDRESS)}:"
            f"{os.environ.get(_PORT)} ({str(error).splitlines()[0]}); start rc1 through accelerate launch or torchrun, "
            f"with a free port (--main_process_port, --master-port), or unset {_RANK} and {_WORLD}"
        ) from error
    forget_launch(os.environ)
    if launch.rank:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the first process handles it; this one ends with it
        with suppress(LostError):
            follow(group)
        return False
    use_launched(group)
    return True


def gpu_of(local: int, visible: str | None, count: int) -> str:
    """Return the entry of `CUDA_VISIBLE_DEVICES` for one process.

    Args:
        local: the process's number on this machine.
        visible: current value of the variable; None if it is not set.

    Raises:
        RC1Error: if there are fewer GPUs than processes.
    """
    if local >= count:
        raise RC1Error(
            f"the launcher started process {local + 1} on this machine, which has {count} GPUs; start one process per "
            f"GPU (accelerate launch --num_processes {count})"
        )
    return str(local) if visible is None else visible.split(",")[local].strip()


def _take_device(local: int) -> None:
    """Make only the GPU with this number visible, because libraries use the first visible one."""
    import torch  # here, because the command line asks for the launch before it needs torch

    count = torch.cuda.device_count()  # asks NVML; once CUDA is initialised, the variable would have no effect
    if count:
        os.environ[_VISIBLE] = gpu_of(local, os.environ.get(_VISIBLE), count)
