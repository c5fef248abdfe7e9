"""The processes of this machine that share a step, as a group of `torch.distributed`: gloo, and nccl between GPUs.

The first process runs the command. The others follow it: it names a method of the engine, and each process works on its
own shards. They meet where their results are gathered. What travels is read as `packed.py` says, and gloo listens on
loopback alone.
"""

from __future__ import annotations

import atexit
import json
import math
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.multiprocessing.spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, start_processes

from rc1_lib.runtime.libraries import quieten
from rc1_lib.training.device import get_device, to_device
from rc1_lib.training.memory import oom_kills
from rc1_lib.training.resource_errors import MEMORY, LostError

Done = TypeVar("Done")

PATIENCE = timedelta(minutes=30)
"""How long processes wait for each other in a step. It is torch's own default."""
_IDLE = timedelta(days=365)
"""How long a worker waits for the next step. The first process may have other work, or wait for a judge."""
_START_S, _END_S, _LOOK_S = 1800.0, 30.0, 0.1
GO_ON = "this step is lost, but no checkpoint is: run the same command again to resume from the newest one"
KILLED = "the kernel has killed a process since then, because memory was full"


class Group:
    """This process's place among those that share a step.

    Attributes:
        rank: of this process; 0 is the first.
        size: number of processes.
        whole: whether no process is known to be lost. A group that is not whole cannot be used any more.
        led: in the first process, the engine that the workers follow.
    """

    led: object = None

    def __init__(self, rank: int, size: int, where: str = "env://", workers: ProcessContext | None = None) -> None:
        """Meet the others.

        Args:
            size: number of processes.
            where: they meet, as torch takes it; by default where a launcher's environment says.
            workers: those that this process has started.
        """
        self.rank, self.size, self._workers, self.whole = rank, size, workers, True
        self._killed_before = oom_kills()
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
        os.environ.update(GLOO_SOCKET_IFNAME=loopback, NCCL_SOCKET_IFNAME=loopback)
        backend = "cpu:gloo,cuda:nccl" if self._device.type == "cuda" else "gloo"
        dist.init_process_group(backend, where, PATIENCE, size, rank)
        self._calls = dist.new_group(backend="gloo", timeout=_IDLE if rank else PATIENCE)

    @property
    def started_here(self) -> bool:
        """Whether this process started the others; else a launcher did."""
        return self._workers is not None

    @contextmanager
    def calling(self, name: str, *arguments: Any) -> Iterator[None]:
        """Let every worker do what has this name, while the first process does the same in the block.

        Args:
            name: as `next_call` returns it.
            arguments: what `pack` takes.

        Raises:
            LostError: if a worker is gone or silent. Every error in the block closes the group, because the workers may
                be anywhere in their part.
        """
        if not self.whole:
            raise LostError("the processes that share a step were lost; start the command again")
        content = pack([name, arguments], torch.device("cpu"))
        try:
            self._together(dist.broadcast, torch.tensor([len(content)]), 0, self._calls)
            self._together(dist.broadcast, content, 0, self._calls)
            yield
        except BaseException:
            self.close()
            raise

    def next_call(self) -> tuple[str, list[Any]]:
        """Wait until the first process names what to do, and return that.

        Raises:
            LostError: if the first process has ended.
        """
        size = torch.zeros(1, dtype=torch.int64)
        self._together(dist.broadcast, size, 0, self._calls)
        content = torch.empty(int(size), dtype=torch.uint8)
        self._together(dist.broadcast, content, 0, self._calls)
        name, arguments = unpack(content)
        return name, arguments

    def all_gather(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Return the results of all processes, given those of this one, by shard.

        Raises:
            LostError: if a process is gone or silent.
        """
        content = pack(mine, self._device)
        # The sizes go through the CPU, so that gloo waits for the slowest process, and nccl only moves bytes.
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        self._together(dist.all_gather, sizes, torch.tensor([len(content)]))
        padded = content.new_zeros(int(torch.cat(sizes).max()))
        padded[: len(content)] = content
        parts = [torch.empty_like(padded) for _ in sizes]
        self._together(dist.all_gather, parts, padded)
        found = dict(mine)
        for rank, (size, part) in enumerate(zip(sizes, parts, strict=True)):
            if rank != self.rank:
                found |= unpack(part[: int(size)])
        return found

    def close(self) -> None:
        """Leave the group, and end the processes that were started for it."""
        if not self.whole:
            return
        self.whole = False
        if self._workers is not None:
            for process in self._workers.processes:
                process.kill()
                process.join()
        dist.destroy_process_group()

    def check_alive(self) -> None:
        """Close the group if a process that was started for it has ended."""
        if self._workers is not None and any(one.exitcode is not None for one in self._workers.processes):
            self.close()

    def _together(self, collective: Callable[..., object], *what: Any) -> None:
        try:
            collective(*what)
        except RuntimeError as error:  # what gloo and nccl raise, for a closed connection as for a timeout
            raise self._loss(str(error)) from error

    def _loss(self, why: str) -> Exception:
        if "timed out" in why.lower():
            return _silence()
        if self._workers is not None and (ended := _how_ended(self._workers, self._killed_before, _END_S)):
            return ended
        if oom_kills() > self._killed_before:
            return LostError(f"one of the {self.size} processes that share a step is gone, and {KILLED}", MEMORY)
        return LostError(
            f"one of the {self.size} processes that share a step is gone; what started it says how it ended; {GO_ON}"
        )


_group: Group | None = None
_asked: tuple[int, int, Callable[[Group], None]] | None = None
"""The process that started the group, and what `group_of` was asked for."""


def launched_group() -> Group | None:
    """Return the processes that a launcher started with this one; None without a launcher."""
    return None if _group is None or _group.started_here else _group


def use_launched(group: Group) -> None:
    """Let every engine use the processes of a launcher."""
    global _group
    _group = group


def group_of(size: int, follow: Callable[[Group], None]) -> Group:
    """Return the group of this process: a launcher's, or the one that it started last, or a new one.

    Starting one takes seconds, because each process imports torch.

    Args:
        size: number of processes, including this one.
        follow: what a new worker does with its group, until the first process ends.

    Raises:
        LostError: if a new worker ends, or is silent, before it has started.
    """
    global _group, _asked
    if _group is not None and _group.started_here:
        _group.check_alive()
        if not _group.whole or _asked != (os.getpid(), size, follow):
            _group.close()
            _group = None
    if _group is None:
        _group, _asked = _start(size, follow), (os.getpid(), size, follow)
    return _group


@atexit.register
def _close() -> None:
    if _group is not None and _asked is not None and _asked[0] == os.getpid():  # not in a fork
        _group.close()


def _start(size: int, follow: Callable[[Group], None]) -> Group:
    folder = Path(tempfile.mkdtemp(prefix="rc1-group-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    killed_before, until = oom_kills(), time.monotonic() + _START_S
    workers: ProcessContext = start_processes(  # type: ignore[no-untyped-call]
        _work, (folder, size, follow), size - 1, join=False, daemon=True, start_method="spawn"
    )
    while not all((folder / str(rank)).exists() for rank in range(1, size)):
        if ended := _how_ended(workers, killed_before, _LOOK_S):
            raise ended
        if time.monotonic() > until:
            for process in workers.processes:
                process.kill()
            raise _silence()
    return Group(0, size, _meeting(folder), workers)


def _meeting(folder: Path) -> str:
    return f"file://{folder}/store"


def _work(index: int, folder: Path, size: int, follow: Callable[[Group], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the first process handles them; this one ends with it
        signal.signal(number, signal.SIG_IGN)
    os.dup2(2, 1)  # standard output belongs to the first process
    quieten(hub=False)
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    rank = index + 1
    (folder / str(rank)).touch()
    with suppress(LostError):
        follow(Group(rank, size, _meeting(folder)))


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    assert first is not None, "a worker is started by another process"
    first.join()
    os._exit(0)


def _how_ended(workers: ProcessContext, killed_before: int, seconds: float) -> Exception | None:
    """Return an error that says how a worker ended; None if none has failed within these seconds."""
    try:
        workers.join(seconds, grace_period=_END_S)
    except ProcessExitedException as ended:
        who = f"process {ended.error_index + 2} of {len(workers.processes) + 1}"
        if ended.exit_code == -signal.SIGKILL and oom_kills() > killed_before:
            return LostError(f"{who} was killed by signal {signal.SIGKILL}, and {KILLED}", MEMORY)
        code = ended.exit_code
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return LostError(f"{who} {how}; {GO_ON}")
    except ProcessRaisedException as raised:
        who = f"process {raised.error_index + 2} of {len(workers.processes) + 1}"
        return RuntimeError(f"{who}: {raised.msg.strip().splitlines()[-1]}\n{raised.msg}")
    return None


def _silence() -> LostError:
    minutes = PATIENCE.total_seconds() / 60
    return LostError(
        f"a process that shares the step was silent for {minutes:g} minutes, expected it to go on; it may be stopped "
        f"(SIGSTOP, a frozen container): end it; {GO_ON}"
    )


# Values as bytes for another process: JSON, and the tensors' own bytes. Reading them runs no code.

_TENSOR, _PAIRS = "tensor", "pairs"


def pack(value: Any, device: torch.device) -> Tensor:
    """Return a value as uint8 on a device.

    Args:
        value: plain values of JSON and tensors, in mappings, lists and tuples. Tuples come back as lists.
    """
    tensors: list[Tensor] = []
    plain = _plain(value, tensors)
    shapes = [[str(one.dtype).removeprefix("torch."), list(one.shape), one.device.type == "cpu"] for one in tensors]
    text = torch.frombuffer(bytearray(json.dumps([shapes, plain]).encode()), dtype=torch.uint8)
    parts = [torch.tensor([len(text)]), text, *tensors]
    return torch.cat([to_device(one.detach().contiguous().reshape(-1).view(torch.uint8), device) for one in parts])


def unpack(content: Tensor) -> Any:
    """Return the value, with its tensors on the CPU or on this process's device as they were on the sender's."""
    start = torch.int64.itemsize
    end = start + int(content[:start].cpu().view(torch.int64))
    shapes, plain = json.loads(bytes(content[start:end].cpu().numpy()))
    tensors = []
    for name, shape, on_cpu in shapes:
        dtype = getattr(torch, name)
        assert isinstance(dtype, torch.dtype), f"found the tensor type '{name}'"
        start, end = end, end + math.prod(shape) * dtype.itemsize
        part = content[start:end].clone().view(dtype).reshape(shape)
        tensors.append(to_device(part, torch.device("cpu") if on_cpu else get_device()))
    return _value(plain, tensors)


def _plain(value: Any, tensors: list[Tensor]) -> Any:
    """Replace tensors by their place in `tensors`, and mappings by their pairs: JSON's keys are only strings."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return {_TENSOR: len(tensors) - 1}
    if isinstance(value, Mapping):
        return {_PAIRS: [[key, _plain(one, tensors)] for key, one in value.items()]}
    return [_plain(one, tensors) for one in value] if isinstance(value, list | tuple) else value


def _value(plain: Any, tensors: list[Tensor]) -> Any:
    if isinstance(plain, dict):
        if _TENSOR in plain:
            return tensors[plain[_TENSOR]]
        return {key: _value(one, tensors) for key, one in plain[_PAIRS]}
    return [_value(one, tensors) for one in plain] if isinstance(plain, list) else plain
