"""Workers that a launcher has started next to this process: `accelerate launch`, `torchrun`.

Lines go over torch.distributed's gloo, on CPUs and between GPUs: what shards come to is put together in their order, so
tensors are collected, not reduced, and pass through the host's memory. The group is none that libraries see: one that
is torch's default they would take for processes that train with them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Protocol, cast

import torch
from torch import Tensor
from torch._C._distributed_c10d import ProcessGroupGloo, Work
from torch.distributed.rendezvous import rendezvous

from rc1_lib.errors import RC1Error
from rc1_lib.training.ranks.channel import LostError
from rc1_lib.training.ranks.launch import Launch, forget_launch, gpu_of
from rc1_lib.training.ranks.worker import work
from rc1_lib.training.ranks.worker_group import GO_ON, KILLED, WorkerGroup
from rc1_lib.training.resource_errors import MEMORY

_PATIENCE = timedelta(days=365)
"""A worker waits for as long as the first process works alone; the socket shows at once that a process has ended."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_joined: LaunchedGroup | None = None
_lost = False
"""Whether a process of this launch is known to be gone: a SIGTERM that comes from then on is the launcher's."""


class Group(Protocol):
    """What of gloo's group is used here, which torch's own types leave out."""

    def send(self, tensors: list[Tensor], peer: int, tag: int, /) -> Work:
        """Begin to send to a rank."""
        ...

    def recv(self, tensors: list[Tensor], peer: int, tag: int, /) -> Work:
        """Begin to fill tensors with what a rank sends."""
        ...

    def size(self) -> int:
        """Processes of the group."""
        ...


class GlooChannel:
    """A channel to another process of the group; a message is its length, and then its bytes."""

    def __init__(self, group: Group, peer: int) -> None:
        """Takes the rank at the other end."""
        self._group, self._peer = group, peer

    def send_bytes(self, buf: bytes, /) -> None:
        """Wait until the other has taken it."""
        for part in (torch.tensor([len(buf)]), torch.frombuffer(bytearray(buf), dtype=torch.uint8)):
            self._wait(self._group.send([part], self._peer, 0))

    def recv_bytes(self) -> bytes:
        """Wait for what the other sends."""
        length = self._received(torch.zeros(1, dtype=torch.int64))
        return self._received(torch.empty(int(length), dtype=torch.uint8)).numpy().tobytes()

    def close(self) -> None:
        """Nothing: the group ends with the process."""

    def _received(self, place: Tensor) -> Tensor:
        self._wait(self._group.recv([place], self._peer, 0))
        return place

    def _wait(self, work: Work) -> None:
        try:
            work.wait()
        except RuntimeError as error:  # all that gloo says of a peer that is gone
            raise ConnectionError(f"process {self._peer + 1} of {self._group.size()}") from error


class LaunchedGroup(WorkerGroup):
    """The processes that a launcher has started with this one. There is one such group, and every engine takes it."""

    to_go_on = "no engine can be set up without them: start the command again"

    def release(self) -> None:
        """Nothing: they wait for the next engine."""

    def _loss(self, error: Exception) -> LostError:
        if self._killed_for_memory():
            return LostError(f"{error} is gone, and {KILLED}", MEMORY)
        return LostError(f"{error} is gone, and what started it says how it ended; {GO_ON}")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with _terminated_later(), super()._guarded():
            yield


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
    group = _meet(launch)
    forget_launch(os.environ)
    if launch.rank == 0:
        _answer_unless_lost()
        _joined = LaunchedGroup([GlooChannel(group, peer) for peer in range(1, launch.size)])
        return True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides; this one ends with it
    with suppress(EOFError, ConnectionError):
        work(GlooChannel(group, 0), launch.rank, launch.size)
    return False


def launched_group() -> LaunchedGroup | None:
    """The processes that were started with this one; None where no launcher started any."""
    return _joined


def _take_device(local: int) -> None:
    """See the GPU of this number alone: libraries that know of no launch take the first that is to be seen."""
    count = torch.cuda.device_count()  # asks NVML; CUDA itself, once begun, would not look at the variable again
    if count:
        os.environ[_VISIBLE] = gpu_of(local, os.environ.get(_VISIBLE), count)


def _meet(launch: Launch) -> Group:
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    try:
        store, _, _ = next(rendezvous("env://"))
        return cast(Group, ProcessGroupGloo(store, launch.rank, launch.size, _PATIENCE))
    except RuntimeError as error:  # all that torch says of a network
        raise RC1Error(
            f"process {launch.rank + 1} of {launch.size} does not reach the others through {address}, where the first "
            f"of them listens ({str(error).splitlines()[0]}); give the launcher an address of that machine and a port "
            f"of it that is free (--main_process_ip and --main_process_port, --master-addr and --master-port)"
        ) from error


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
