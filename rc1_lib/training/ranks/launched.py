"""Workers that a launcher started together with this process: `accelerate launch`, `torchrun`.

The launcher's environment gives this process's rank and the address of torch's store, through which the processes find
each other. The rest of the program does not notice.
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
"""Key in the store where the first process publishes its port, and the token that workers must send."""
_HELLO_S = 10
_joined: LaunchedGroup | None = None
_lost = False
"""Whether a process of this launch is known to be gone. A SIGTERM after that comes from the launcher."""


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
        RC1Error: if the rank is invalid, or the address of the first process is missing.
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
    """Remove the launcher's variables from the environment.

    TRL, transformers and accelerate read them too. They would wait for the other processes to train with them, while
    those wait for this one, or use a precision that only the launcher was given.
    """
    for name in [name for name in environment if name in _NAMES or name.startswith(_PREFIXES)]:
        del environment[name]


class LaunchedGroup(WorkerGroup):
    """The processes that a launcher started with this one. There is only one such group, used by every engine."""

    to_go_on = "no engine can be set up without them: start the command again"

    def release(self) -> None:
        """Do nothing; the workers wait for the next engine."""

    def _loss(self, process: int) -> LostError:
        who = f"process {process} of {self.link.size} is gone"
        if self._killed_for_memory():
            return LostError(f"{who}, and {KILLED}", MEMORY)
        return LostError(f"{who}; the launcher's output says how it ended; {GO_ON}")

    @contextmanager
    def _guarded(self, call: Call) -> Iterator[None]:
        with _terminated_later(), super()._guarded(call):
            yield


def launched_group() -> LaunchedGroup | None:
    """Return the processes started with this one; None without a launcher."""
    return _joined


def join(launch: Launch) -> bool:
    """Take the role that the launcher gave this process. A worker works until the first process ends.

    Args:
        launch: this process's place.

    Returns:
        True in the first process, which goes on; False in a worker, when its work is done.

    Raises:
        RC1Error: if there is no GPU left for it, or the others cannot be reached.
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
    """Return the entry of `CUDA_VISIBLE_DEVICES` for one process.

    Args:
        local: the process's number on this machine.
        visible: current value of the variable; None if it is not set.
        count: number of visible GPUs.

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


def _meet(launch: Launch) -> list[Connection]:
    """Connect the first process to all workers, in order of their ranks, or a worker to the first process."""
    from torch.distributed.rendezvous import rendezvous

    host, port = os.environ[_ADDRESS], os.environ[_PORT]
    try:
        store, _, _ = next(rendezvous("env://"))
        return [_call_first(store, host, launch.rank)] if launch.rank else _take_calls(store, host, launch.size)
    except (RuntimeError, OSError) as error:  # network errors of torch and of sockets
        raise RC1Error(
            f"process {launch.rank + 1} of {launch.size} cannot reach the others through {host}:{port}, where the "
            f"first of them listens ({str(error).splitlines()[0]}); give the launcher the address of that machine and "
            "a free port (--main_process_ip and --main_process_port, --master-addr and --master-port)"
        ) from error


def _take_calls(store: Any, host: str, size: int) -> list[Connection]:
    """Listen until every worker has connected. Connections without this launch's token are closed."""
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
    port, word = store.get(_MEETING).decode().split()  # blocks until the key is set
    connection = Connection(socket.create_connection((host, int(port))).detach())
    connection.send_bytes(f"{word} {rank}".encode())
    return connection


def _answer_unless_lost() -> None:
    """Handle SIGTERM as before, but ignore it after a process was lost.

    At the end of a flow Prefect restores the handler that it found. The default one would end this process when the
    launcher terminates it, before it has reported the loss.
    """
    before = signal.getsignal(signal.SIGTERM)

    def answer(*_: object) -> None:
        if not _lost:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
            signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, answer)


@contextmanager
def _terminated_later() -> Iterator[None]:
    """Postpone SIGTERM inside the context, because a launcher that lost a process terminates the others at once.

    If the channel shows a loss, SIGTERM is ignored so that this process can report it. Without a loss it was meant for
    this process, for example from a scheduler, and is raised again with the previous handler.
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
