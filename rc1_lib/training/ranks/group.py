"""Several processes that do one step together: the workers make each call that the first process makes.

Each works on its own shards. A process that ends closes its channel, which the other side sees at once, so no timeout
is needed. Everything passes through the first process: a few megabytes a step. The channels are plain sockets, not
`torch.distributed`: TRL, transformers and accelerate would take its default group for processes that train with them.
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

GO_ON = (
    "the step it was part of is lost, the checkpoints are not: run the same command again and it goes on from the "
    "newest one"
)
"""What to do where a process was lost."""
KILLED = "the kernel has ended a process since, because memory was full"
"""Why it was, where the kernel says so."""


class LostError(WorkerShortage, RC1Error):
    """A process of the group is gone, or has refused its part."""


class WorkerError(WorkerShortage, RuntimeError):
    """A process of the group has failed; its traceback is in the message."""


class DisconnectedError(Exception):
    """The process at the other end of a channel is gone.

    Attributes:
        process: which, counted from 1.
    """

    def __init__(self, process: int) -> None:
        super().__init__(f"process {process}")
        self.process = process


class Channel:
    """One end of a connection between two processes of this program."""

    def __init__(self, connection: Connection, process: int) -> None:
        """Takes the number of the process at the other end, counted from 1."""
        self._connection, self._process = connection, process

    def send(self, thing: Any) -> None:
        """Send an object; returns once the system has taken it.

        Raises:
            DisconnectedError: when the other process is gone.
        """
        # Not `Connection.send`: it would move tensors into shared memory, whose handles outlive a killed process.
        content = io.BytesIO()
        _Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        try:
            self._connection.send_bytes(content.getbuffer())
        except OSError as error:
            raise DisconnectedError(self._process) from error

    def receive(self) -> Any:
        """Wait for an object.

        Raises:
            DisconnectedError: when the other process is gone, in the middle of a message too.
            LostError: when it has refused its part.
            WorkerError: when it has failed.
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
    """Has a tensor of an accelerator come back on that of whoever reads it: each process has one of its own."""

    def reducer_override(self, thing: Any) -> Any:
        """Python's own way for everything else."""
        torch = sys.modules.get("torch")  # not imported here: a process may exchange what needs no torch
        if torch is not None and isinstance(thing, torch.Tensor) and thing.device.type != "cpu":
            return _on_own_device, (thing.cpu(),)
        return NotImplemented


def _on_own_device(tensor: Tensor) -> Any:
    from rc1_lib.training.device import get_device, to_device

    return to_device(tensor, get_device())


class Link:
    """What the processes of a group exchange results through.

    Attributes:
        rank: of this process; 0 leads.
        size: processes.
    """

    def __init__(self, rank: int, size: int, channels: Sequence[Channel]) -> None:
        """Takes the first process's channels to the workers, or a worker's to the first process."""
        self.rank, self.size, self._channels = rank, size, channels

    def all_gather(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Give the others what came of one's own shards, and return that of all."""
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
    """What a worker does next; it answers with None or with an error.

    Attributes:
        function: a method, called with the worker's object; or what constructs that object, called with its link.
        constructs: which of them.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)
    constructs: bool = False


class WorkerGroup(ABC):
    """The worker processes that share the work of one engine, as the first process sees them.

    Attributes:
        link: this process's.
        to_go_on: what to do where it was closed.
    """

    to_go_on: ClassVar[str]

    def __init__(self, connections: Sequence[Connection]) -> None:
        """Takes the connection to each worker."""
        assert connections, "a group of one"
        self._killed_before = oom_kills()
        self._channels = [Channel(connection, process) for process, connection in enumerate(connections, start=2)]
        self.link = Link(0, 1 + len(connections), self._channels)

    @abstractmethod
    def release(self) -> None:
        """Keep it for the next engine."""
        ...

    @abstractmethod
    def _loss(self, process: int) -> LostError:
        """How a process whose channel broke has ended, as far as that can be known."""
        ...

    def _killed_for_memory(self) -> bool:
        """Whether the kernel has ended a process of this machine since the group is there, because memory was full."""
        return oom_kills() > self._killed_before

    @property
    def whole(self) -> bool:
        """Whether no worker is known to be gone."""
        return bool(self._channels)

    @contextmanager
    def constructing(self, make: Callable[[Link, Given], object], given: Given) -> Iterator[None]:
        """While every worker constructs its object by `make`; the first process constructs its own inside.

        Raises:
            LostError: when a worker ended or refused; this and any other error inside closes the group.
            WorkerError: when one has failed.
        """
        with self._guarded(Call(make, (given,), constructs=True)):
            yield

    @contextmanager
    def calling(self, method: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> Iterator[None]:
        """While every worker calls a method on its object; the first process calls it on its own inside.

        Args:
            method: of the first process's object; pickled by its class and name, so that a worker imports it.
            arguments: of the call, and
            named: those by name.

        Raises:
            LostError: when a worker ended or refused; this and any other error inside closes the group.
            WorkerError: when one has failed.
        """
        assert isinstance(method, MethodType), f"{method} is not a method of an object"
        with self._guarded(Call(method.__func__, arguments, named)):
            yield

    def close(self) -> None:
        """Close all channels; what the workers were doing is dropped."""
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    @contextmanager
    def _guarded(self, call: Call) -> Iterator[None]:
        try:
            if not self._channels:
                raise LostError(f"the processes that shared this work were ended; {self.to_go_on}")
            for channel in self._channels:
                channel.send(call)
            yield
            for channel in self._channels:
                said = channel.receive()
                assert said is None, f"a worker sent {said!r} where it should be done"
        except DisconnectedError as error:
            loss = self._loss(error.process)
            self.close()
            raise loss from error
        except BaseException:
            # The workers may be anywhere in their part, so they cannot be used again.
            self.close()
            raise


def work(connection: Connection, rank: int, size: int) -> None:
    """Be a worker: make the calls of the first process on its own shards, in its order, until that one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides; this one ends with it
    first = Channel(connection, 1)
    link, engine = Link(rank, size, [first]), None
    with suppress(DisconnectedError):
        while True:
            try:
                call = first.receive()
                if call.constructs:
                    engine = None  # two policies at once would need twice the memory
                    gc.collect()
                    engine = call.function(link, *call.arguments)
                else:
                    call.function(engine, *call.arguments, **call.named)
            except DisconnectedError:
                raise
            except Exception as error:
                # An error of the work itself meets the first process too, which then raises its own.
                first.send(_as_sent(error, f"process {rank + 1} of {size}: "))
                return
            first.send(None)


def _as_sent(error: Exception, who: str) -> WorkerShortage:
    if isinstance(error, RC1Error):
        return LostError(f"{who}{error}")
    lacking, what = shortage(error), traceback.format_exc()
    return WorkerError(f"{who}{str(error) or type(error).__name__}\n{what}" if lacking else f"{who}{what}", lacking)
