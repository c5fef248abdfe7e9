"""What a launcher (`accelerate launch`, `torchrun`) says to each process that it starts, in its environment."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from rc1_lib.errors import RC1Error

_WORLD, _RANK, _LOCAL = "WORLD_SIZE", "RANK", "LOCAL_RANK"
_NAMES = (_WORLD, _RANK, _LOCAL, "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_PREFIXES = ("ACCELERATE_", "TORCHELASTIC_", "GROUP_", "ROLE_")


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
        RC1Error: when what it says is no place among several processes.
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
    return Launch(rank, size, local) if size > 1 else None


def forget_launch(environment: MutableMapping[str, str]) -> None:
    """Take out what the launcher said.

    Libraries read it too (TRL, transformers and accelerate), and would wait for other processes to train beside them,
    where those wait for this one's words.
    """
    for name in [name for name in environment if name in _NAMES or name.startswith(_PREFIXES)]:
        del environment[name]
