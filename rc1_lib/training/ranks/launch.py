"""What a launcher (`accelerate launch`, `torchrun`) says to each process that it starts, in its environment."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from rc1_lib.errors import RC1Error

_WORLD, _RANK, _LOCAL = "WORLD_SIZE", "RANK", "LOCAL_RANK"
_ADDRESS, _PORT = "MASTER_ADDR", "MASTER_PORT"
_NAMES = (
    _WORLD, _RANK, _LOCAL, "LOCAL_WORLD_SIZE", _ADDRESS, _PORT,
    "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE",
)  # fmt: skip
_PREFIXES = ("ACCELERATE_", "TORCHELASTIC_")


@dataclass(frozen=True, slots=True)
class Launch:
    """A process among those that were started together.

    Attributes:
        rank: from 0; that one leads.
        size: processes, two or more.
        local: its number among those of this machine, which is the number of its GPU.
    """

    rank: int
    size: int
    local: int


def launch_of(environment: Mapping[str, str]) -> Launch | None:
    """What a launcher says; None where there is none, or where it has started one process alone.

    Raises:
        RC1Error: when what it says is no place among several processes, or not where they meet.
    """
    if _RANK not in environment or _WORLD not in environment:
        return None
    said = {name: environment.get(name, environment[_RANK]) for name in (_RANK, _WORLD, _LOCAL)}
    if not all(value.isdecimal() for value in said.values()) or int(said[_RANK]) >= int(said[_WORLD]):
        found = ", ".join(f"{name}={value}" for name, value in said.items())
        raise RC1Error(
            f"the environment has {found}, expected whole numbers and RANK below WORLD_SIZE, as accelerate launch and "
            f"torchrun set them; start rc1 through one of these, or unset RANK and WORLD_SIZE"
        )
    rank, size, local = map(int, said.values())
    if size == 1:
        return None
    _check_meeting(environment)
    return Launch(rank, size, local)


def gpu_of(local: int, visible: str | None, count: int) -> str:
    """The entry of `CUDA_VISIBLE_DEVICES` that is one process's alone.

    Args:
        local: the process's number on this machine.
        visible: what the variable says; None where it is not set.
        count: GPUs that are there under it.

    Raises:
        RC1Error: when there is none left for it.
    """
    if local >= count:
        raise RC1Error(
            f"the launcher started process {local + 1} on this machine, which has {count} GPUs; start one process a "
            f"GPU (accelerate launch --num_processes {count})"
        )
    return str(local) if visible is None else visible.split(",")[local].strip()


def forget_launch(environment: MutableMapping[str, str]) -> None:
    """Take out what the launcher said.

    Libraries read it too (TRL, transformers and accelerate), and would wait for other processes to train with them,
    where those wait for this one's words; or compute in a precision that only the launcher was asked for.
    """
    for name in [name for name in environment if name in _NAMES or name.startswith(_PREFIXES)]:
        del environment[name]


def _check_meeting(environment: Mapping[str, str]) -> None:
    address, port = environment.get(_ADDRESS, ""), environment.get(_PORT, "")
    if not address or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise RC1Error(
            f"the environment has {_RANK} and {_WORLD}, but {_ADDRESS}={address}, {_PORT}={port}, expected the address "
            f"and a port (1 to 65535) of the first process, as accelerate launch and torchrun set them; start rc1 "
            f"through one of these, or unset {_RANK} and {_WORLD}"
        )
