"""A group of processes that do each step together: workers repeat every call of the first process on their own shards.

A process that ends closes its channel, which the other side notices at once, so no timeout is needed. All data go
through the first process: a few megabytes per step. The channels are plain sockets instead of `torch.distributed`,
because TRL, transformers and accelerate would take its default group for processes that train with them.
"""

from __future__ import annotations

import gc
import io
import pickle
import signal
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from rc1_lib.errors import RC1Error
from rc1_lib.training.memory import oom_kills
from rc1_lib.training.resource_errors import WorkerShortage, shortage

if TYPE_CHECKING:
    from torch import Tensor

Done = TypeVar("Done")
Given = TypeVar("Given")
P = ParamSpec("P")

GO_ON = "this step is lost, but no checkpoint is: run the same command again to resume from the newest one"
"""What to do after losing a process."""
KILLED = "the kernel has killed a process since then, because memory was full"
"""Why a process was lost, if the kernel says so."""


class LostError(WorkerShortage, RC1Error):
    """A process of the group is gone, or has rejected its part."""


class WorkerError(WorkerShortage, RuntimeError):
    """A process of the group has failed. The message has its traceback."""


class DisconnectedError(Exception):
    """The process at the other end of a channel is gone.

    Attributes:
        process: its number, from 1.
    """

    def __init__(self, process: int) -> None:
        super().__init__(f"process {process}")
        self.process = process


class Channel:
    """One end of a connection between two processes of this program."""

    def __init__(self, connection: Connection, process: int) -> None:
        """Keep the connection and the number of the process at the other end, from 1."""
        self._connection, self._process = connection, process

    def send(self, thing: Any) -> None:
        """Send an object. Returns once the operating system has accepted it.

        Raises:
            DisconnectedError: if the other process is gone.
        """
        # Not `Connection.send`: it would move tensors to shared memory, which a killed process would leak.
        content = io.BytesIO()
        _Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        try:
            self._connection.send_bytes(content.getbuffer())
        except OSError as error:
            raise DisconnectedError(self._process) from error

    def receive(self) -> Any:
        """Wait for an object.

        Raises:
            DisconnectedError: if the other process is gone, even in the middle of a message.
            LostError: if it rejected its part.
            WorkerError: if it failed.
        """
        try:
            content = self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise DisconnectedError(self._process) from error
        thing = pickle.loads(content)
        if isinstance(thing, WorkerShortage):
            raise thing
        return thing

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


class _Pickler(pickle.Pickler):
    """Pickles tensors of an accelerator so that they are loaded onto the receiver's own device."""

    def reducer_override(self, thing: Any) -> Any:
        """Use Python's default for everything else."""
        torch = sys.modules.get("torch")  # not imported here, because exchanging other objects needs no torch
        if torch is not None and isinstance(thing, torch.Tensor) and thing.device.type != "cpu":
            return _on_own_device, (thing.cpu(),)
        return NotImplemented


def _on_own_device(tensor: Tensor) -> Any:
    from rc1_lib.training.device import get_device, to_device

    return to_device(tensor, get_device())


class Link:
    """Exchanges results between the processes of a group.

    Attributes:
        rank: of this process; 0 is the first process.
        size: number of processes.
    """

    def __init__(self, rank: int, size: int, channels: Sequence[Channel]) -> None:
        """Keep the channels to the workers, or in a worker the channel to the first process."""
        self.rank, self.size, self._channels = rank, size, channels

    def all_gather(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Send the results of this process's shards to the others, and return the results of all shards."""
        found = dict(mine)
        if self.rank:
            first = self._channels[0]
            first.send(found)
            everybodys: dict[int, Done] = first.receive()
            return everybodys
        for channel in self._channels:
            found |= channel.receive()
        for channel in self._channels:
            channel.send(found)
        return found


@dataclass(frozen=True, slots=True)
class Call:
    """What a worker does next. It replies with None or an error.

    Attributes:
        function: a method to call on the worker's object, or a function that constructs the object from its link.
        constructs: whether `function` constructs the object.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)
    constructs: bool = False


class WorkerGroup(ABC):
    """The worker processes of one engine, as the first process sees them.

    Attributes:
        link: of the first process.
        to_go_on: what to do after the group was closed.
    """

    to_go_on: ClassVar[str]

    def __init__(self, connections: Sequence[Connection]) -> None:
        """Keep the connection to each worker."""
        assert connections, "a group needs at least one worker"
        self._killed_before = oom_kills()
        self._channels = [Channel(connection, process) for process, connection in enumerate(connections, start=2)]
        self.link = Link(0, 1 + len(connections), self._channels)

    @abstractmethod
    def release(self) -> None:
        """Keep the group for the next engine."""
        ...

    @abstractmethod
    def _loss(self, process: int) -> LostError:
        """Return an error that says, if known, how a process with a broken channel ended."""
        ...

    def _killed_for_memory(self) -> bool:
        """Whether the kernel has killed a process of this machine since the group began, because memory was full."""
        return oom_kills() > self._killed_before

    @property
    def whole(self) -> bool:
        """Whether all workers are alive, as far as is known."""
        return bool(self._channels)

    @contextmanager
    def constructing(self, make: Callable[[Link, Given], object], given: Given) -> Iterator[None]:
        """Let every worker construct its object with `make` while the first process constructs its own in the block.

        Raises:
            LostError: if a worker ended or rejected its part. This and any other error in the block closes the group.
            WorkerError: if a worker failed.
        """
        with self._guarded(Call(make, (given,), constructs=True)):
            yield

    @contextmanager
    def calling(self, method: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> Iterator[None]:
        """Let every worker call a method on its object while the first process calls it on its own in the block.

        Args:
            method: of the first process's object. It is pickled by class and name, so workers import it.
            arguments: positional arguments of the call.
            named: keyword arguments of the call.

        Raises:
            LostError: if a worker ended or rejected its part. This and any other error in the block closes the group.
            WorkerError: if a worker failed.
        """
        assert isinstance(method, MethodType), f"{method} is not a method of an object"
        with self._guarded(Call(method.__func__, arguments, named)):
            yield

    def close(self) -> None:
        """Close all channels. Unfinished work is lost."""
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    @contextmanager
    def _guarded(self, call: Call) -> Iterator[None]:
        try:
            if not self._channels:
                raise LostError(f"the worker processes were stopped; {self.to_go_on}")
            for channel in self._channels:
                channel.send(call)
            yield
            for channel in self._channels:
                said = channel.receive()
                assert said is None, f"found the reply {said!r} of a worker, expected None"
        except DisconnectedError as error:
            loss = self._loss(error.process)
            self.close()
            raise loss from error
        except BaseException:
            # The workers may be anywhere in their part, so they cannot be used again.
            self.close()
            raise


def work(connection: Connection, rank: int, size: int) -> None:
    """Run as a worker: repeat the calls of the first process on this process's shards, until the first process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process handles Ctrl+C; this one ends with it
    first = Channel(connection, 1)
    link, engine = Link(rank, size, [first]), None
    with suppress(DisconnectedError):
        while True:
            try:
                call = first.receive()
                if call.constructs:
                    engine = None  # free the old policy first; two at once would need twice the memory
                    gc.collect()
                    engine = call.function(link, *call.arguments)
                else:
                    call.function(engine, *call.arguments, **call.named)
            except DisconnectedError:
                raise
            except Exception as error:
                # An error in the work itself occurs in the first process too, which then raises its own.
                first.send(_as_sent(error, f"process {rank + 1} of {size}: "))
                return
            first.send(None)


def _as_sent(error: Exception, who: str) -> WorkerShortage:
    if isinstance(error, RC1Error):
        return LostError(f"{who}{error}")
    lacking, what = shortage(error), traceback.format_exc()
    return WorkerError(f"{who}{str(error) or type(error).__name__}\n{what}" if lacking else f"{who}{what}", lacking)
