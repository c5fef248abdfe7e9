"""Workers that a launcher has started next to this process: `accelerate launch`, `torchrun`.

The launcher's environment says which of them this process is, and where torch's store is, through which they find each
other. The rest of the program sees nothing of it.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.training.ranks.group import GO_ON, KILLED, Call, LostError, WorkerGroup, work
from rc1_lib.training.resource_errors import MEMORY

_WORLD, _RANK, _LOCAL = "WORLD_SIZE", "RANK", "LOCAL_RANK"
_ADDRESS, _PORT = "MASTER_ADDR", "MASTER_PORT"
_NAMES = (
    _WORLD, _RANK, _LOCAL, "LOCAL_WORLD_SIZE", _ADDRESS, _PORT,
    "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE",
)  # fmt: skip
_PREFIXES = ("ACCELERATE_", "TORCHELASTIC_")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_MEETING = "rc1"
"""The key of the store under which the first process says where it listens, and the word that it lets in."""
_HELLO_S = 10
_joined: LaunchedGroup | None = None
_lost = False
"""Whether a process of this launch is known to be gone: a SIGTERM that comes from then on is the launcher's."""


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
    address, port = environment.get(_ADDRESS, ""), environment.get(_PORT, "")
    if not address or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise RC1Error(
            f"the environment has {_RANK} and {_WORLD}, but {_ADDRESS}={address}, {_PORT}={port}, expected the address "
            f"and a port (1 to 65535) of the first process, as accelerate launch and torchrun set them; start rc1 "
            f"through one of these, or unset {_RANK} and {_WORLD}"
        )
    return Launch(rank, size, local)


def forget_launch(environment: MutableMapping[str, str]) -> None:
    """Take out what the launcher said.

    Libraries read it too (TRL, transformers and accelerate), and would wait for other processes to train with them,
    where those wait for this one's words; or compute in a precision that only the launcher was asked for.
    """
    for name in [name for name in environment if name in _NAMES or name.startswith(_PREFIXES)]:
        del environment[name]


class LaunchedGroup(WorkerGroup):
    """The processes that a launcher has started with this one. There is one such group, and every engine takes it."""

    to_go_on = "no engine can be set up without them: start the command again"

    def release(self) -> None:
        """Nothing: they wait for the next engine."""

    def _loss(self, process: int) -> LostError:
        who = f"process {process} of {self.link.size} is gone"
        if self._killed_for_memory():
            return LostError(f"{who}, and {KILLED}", MEMORY)
        return LostError(f"{who}, and what started it says how it ended; {GO_ON}")

    @contextmanager
    def _guarded(self, call: Call) -> Iterator[None]:
        with _terminated_later(), super()._guarded(call):
            yield


def launched_group() -> LaunchedGroup | None:
    """The processes that were started with this one; None where no launcher started any."""
    return _joined


def join(launch: Launch) -> bool:
    """Take the place that the launcher gives this process.

    A worker works for the first process until that one ends.

    Args:
        launch: what the launcher says.

    Returns:
        Whether this is the first process, which goes on; a worker's work is done then.

    Raises:
        RC1Error: when there is no GPU left for it, or the others cannot be reached.
    """
    global _joined
    _take_device(launch.local)
    connections = _meet(launch)
    forget_launch(os.environ)
    if launch.rank:
        work(connections[0], launch.rank, launch.size)
        return False
    _answer_unless_lost()
    _joined = LaunchedGroup(connections)
    return True


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


def _take_device(local: int) -> None:
    """See the GPU of this number alone: libraries that know of no launch take the first that is to be seen."""
    import torch  # here, since the command line asks for the launch before anything needs torch

    count = torch.cuda.device_count()  # asks NVML; CUDA itself, once begun, would not look at the variable again
    if count:
        os.environ[_VISIBLE] = gpu_of(local, os.environ.get(_VISIBLE), count)


def _meet(launch: Launch) -> list[Connection]:
    """The first process's connections to the workers, in their order; a worker's to the first process."""
    from torch.distributed.rendezvous import rendezvous

    host, port = os.environ[_ADDRESS], os.environ[_PORT]
    try:
        store, _, _ = next(rendezvous("env://"))
        return [_call_first(store, host, launch.rank)] if launch.rank else _take_calls(store, host, launch.size)
    except (RuntimeError, OSError) as error:  # all that torch says of a network, and what sockets say
        raise RC1Error(
            f"process {launch.rank + 1} of {launch.size} does not reach the others through {host}:{port}, where the "
            f"first of them listens ({str(error).splitlines()[0]}); give the launcher an address of that machine and a "
            f"port of it that is free (--main_process_ip and --main_process_port, --master-addr and --master-port)"
        ) from error


def _take_calls(store: Any, host: str, size: int) -> list[Connection]:
    """Listen until every worker has called; who does not know the word of this launch is not let in."""
    word, found = secrets.token_hex(), dict[int, Connection]()
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    with socket.create_server(("", 0), family=family, backlog=size) as server:
        store.set(_MEETING, f"{server.getsockname()[1]} {word}")
        while len(found) < size - 1:
            caller = Connection(server.accept()[0].detach())
            with suppress(EOFError, OSError, ValueError):
                said = caller.recv_bytes(2 * len(word)).split() if caller.poll(_HELLO_S) else []
                if len(said) == 2 and secrets.compare_digest(said[0], word.encode()):
                    found[int(said[1])] = caller
                    continue
            caller.close()
    return [found[rank] for rank in sorted(found)]


def _call_first(store: Any, host: str, rank: int) -> Connection:
    port, word = store.get(_MEETING).decode().split()  # waits until it is there
    connection = Connection(socket.create_connection((host, int(port))).detach())
    connection.send_bytes(f"{word} {rank}".encode())
    return connection


def _answer_unless_lost() -> None:
    """From now on, SIGTERM is answered as it would have been, but not after a loss.

    The end of a flow puts back what Prefect has found there. By default that ended this process, which had heard of the
    loss and not said so yet, when the launcher came to end it.
    """
    before = signal.getsignal(signal.SIGTERM)

    def answer(*_: object) -> None:
        if not _lost:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
            signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, answer)


@contextmanager
def _terminated_later() -> Iterator[None]:
    """Inside, SIGTERM waits: a launcher that has lost a process ends the others, before they have said so.

    The channel shows the loss, and then SIGTERM waits until this process has come to its own end. Without one it was
    for this process, say from a scheduler that needs the machine, and is answered as it would have been before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _lost
    came = False

    def note(*_: object) -> None:
        nonlocal came
        came = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield
    except LostError:
        _lost = True
        raise
    finally:
        if not _lost:
            signal.signal(signal.SIGTERM, before)
            if came:
                signal.raise_signal(signal.SIGTERM)
