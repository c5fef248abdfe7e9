"""Messages between the first process and the workers of its group.

A process that ends closes its channel, which the other side sees at once, so no timeout is needed. Everything passes
through the first process: a few megabytes a step.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rc1_lib.errors import RC1Error
from rc1_lib.training.resource_errors import WorkerShortage

if TYPE_CHECKING:
    from torch import Tensor

Done = TypeVar("Done")


class Channel(Protocol):
    """One end of a connection; raises EOFError or ConnectionError once the other process has ended."""

    def send_bytes(self, buf: bytes, /) -> None:
        """Send a message; returns once the other process has it."""
        ...

    def recv_bytes(self) -> bytes:
        """Wait for a message."""
        ...

    def close(self) -> None:
        """Close this end."""
        ...


class LostError(RC1Error, WorkerShortage):
    """A process of the group is gone, or has refused its part.

    Attributes:
        lacking: what had run out, in the words of `shortage`, where that is why it is gone; else "".
    """

    def __init__(self, text: str, lacking: str = "") -> None:
        """Say which, and how it ended."""
        super().__init__(text)
        self.lacking = lacking


class WorkerError(RuntimeError, WorkerShortage):
    """A process of the group has failed; its traceback is in the message.

    Attributes:
        lacking: what had run out, in the words of `shortage`; "" where something else failed.
    """

    def __init__(self, text: str, lacking: str = "") -> None:
        """Say which, and its traceback."""
        super().__init__(text)
        self.lacking = lacking


@dataclass(frozen=True, slots=True)
class Failure:
    """What a worker says instead of its result.

    Attributes:
        text: a sentence for the user, or a traceback.
        refused: which of them.
        lacking: what had run out there; "" where that is not what failed.
    """

    text: str
    refused: bool
    lacking: str = ""


class _Pickler(pickle.Pickler):
    """Has a tensor of an accelerator come back on that of whoever reads it: each process has one of its own."""

    def reducer_override(self, thing: Any) -> Any:
        """Python's own way for everything else."""
        torch = sys.modules.get("torch")  # not imported here: a channel has to be there before torch is
        if torch is not None and isinstance(thing, torch.Tensor) and thing.device.type != "cpu":
            return _on_own_device, (thing.cpu(),)
        return NotImplemented


def _on_own_device(tensor: Tensor) -> Any:
    from rc1_lib.training.device import get_device, to_device

    return to_device(tensor, get_device())


def send(channel: Channel, thing: Any) -> None:
    """Send an object of this very program to another process of it."""
    # Not `Connection.send`: it would move tensors into shared memory, whose handles outlive a killed process.
    content = io.BytesIO()
    _Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
    channel.send_bytes(content.getvalue())


def receive(channel: Channel) -> Any:
    """Wait for what another process of this program sends.

    Raises:
        EOFError: when it is gone.
        LostError: when it has refused its part.
        WorkerError: when it has failed.
    """
    thing = pickle.loads(channel.recv_bytes())
    if isinstance(thing, Failure):
        raise LostError(thing.text) if thing.refused else WorkerError(thing.text, thing.lacking)
    return thing


class LeaderLink:
    """The first process's end of all channels.

    Attributes:
        rank: 0.
        size: processes.
    """

    rank = 0

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Takes the channel to each worker."""
        self._channels = channels
        self.size = 1 + len(channels)

    def all_gather(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Collect every worker's results, and send all of them to each."""
        found = dict(mine)
        for channel in self._channels:
            found |= receive(channel)
        for channel in self._channels:
            send(channel, found)
        return found


class WorkerLink:
    """A worker's end of its channel.

    Attributes:
        rank: from 1.
        size: processes.
    """

    def __init__(self, channel: Channel, rank: int, size: int) -> None:
        """Takes the channel to the first process."""
        self._channel, self.rank, self.size = channel, rank, size

    def all_gather(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Send one's own results to the first process, and receive everybody's."""
        send(self._channel, dict(mine))
        found: dict[int, Done] = receive(self._channel)
        return found
