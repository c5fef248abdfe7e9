"""The lines between the processes of one crew, whatever they are made of.

A process that dies closes its end, which the others see at once, so that nobody waits for a time to be up. All pass
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


class Line(Protocol):
    """One end of a line between two processes; the other's loss is an `EOFError` or a `ConnectionError`."""

    def send_bytes(self, buf: bytes, /) -> None:
        """Wait until the other has taken it."""
        ...

    def recv_bytes(self) -> bytes:
        """Wait for what the other sends."""
        ...

    def close(self) -> None:
        """Hear and say no more."""
        ...


class LostError(RC1Error, WorkerShortage):
    """A process of the crew is gone, or has refused its part.

    Attributes:
        lacking: what had run out, in the words of `shortage`, where that is why it is gone; else "".
    """

    def __init__(self, text: str, lacking: str = "") -> None:
        """Say which, and how it ended."""
        super().__init__(text)
        self.lacking = lacking


class FollowerError(RuntimeError, WorkerShortage):
    """A process of the crew has failed; its traceback is in the message.

    Attributes:
        lacking: what had run out, in the words of `shortage`; "" where something else failed.
    """

    def __init__(self, text: str, lacking: str = "") -> None:
        """Say which, and its traceback."""
        super().__init__(text)
        self.lacking = lacking


@dataclass(frozen=True, slots=True)
class Failure:
    """What a follower says instead of its result.

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
        torch = sys.modules.get("torch")  # not imported here: a line has to be there before torch is
        if torch is not None and isinstance(thing, torch.Tensor) and thing.device.type != "cpu":
            return _on_own_device, (thing.cpu(),)
        return NotImplemented


def _on_own_device(tensor: Tensor) -> Any:
    from rc1_lib.training.device import get_device, to_device

    return to_device(tensor, get_device())


def send(line: Line, thing: Any) -> None:
    """Send an object of this very program to another process of it."""
    # Not `Connection.send`: it would move tensors into shared memory, whose handles outlive a killed process.
    content = io.BytesIO()
    _Pickler(content, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
    line.send_bytes(content.getvalue())


def receive(line: Line) -> Any:
    """Wait for what another process of this program sends.

    Raises:
        EOFError: when it is gone.
        LostError: when it has refused its part.
        FollowerError: when it has failed.
    """
    thing = pickle.loads(line.recv_bytes())
    if isinstance(thing, Failure):
        raise LostError(thing.text) if thing.refused else FollowerError(thing.text, thing.lacking)
    return thing


class LeaderLink:
    """The first process's end of all lines.

    Attributes:
        rank: 0.
        size: processes.
    """

    rank = 0

    def __init__(self, lines: Sequence[Line]) -> None:
        """Takes the line to each follower."""
        self._lines = lines
        self.size = 1 + len(lines)

    def exchange(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Collect from the followers in turn, and tell them all."""
        found = dict(mine)
        for line in self._lines:
            found |= receive(line)
        for line in self._lines:
            send(line, found)
        return found


class FollowerLink:
    """A follower's end of its line.

    Attributes:
        rank: from 1.
        size: processes.
    """

    def __init__(self, line: Line, rank: int, size: int) -> None:
        """Takes the line to the first process."""
        self._line, self.rank, self.size = line, rank, size

    def exchange(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Tell the first process, and hear from it what all came to."""
        send(self._line, dict(mine))
        found: dict[int, Done] = receive(self._line)
        return found
