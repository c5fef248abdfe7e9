"""The lines between the processes of one crew: pairs of sockets that only they hold.

Nothing listens on a network. A process that dies closes its end, which the others see at once, so that nobody waits for
a time to be up. All pass through the first process: a few megabytes a step.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from rc1_lib.errors import RC1Error

Done = TypeVar("Done")


class LostError(RC1Error):
    """A process of the crew is gone, or has refused its part."""


class FollowerError(RuntimeError):
    """A process of the crew has failed; its traceback is in the message."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a follower says instead of its result.

    Attributes:
        text: a sentence for the user, or a traceback.
        refused: which of them.
    """

    text: str
    refused: bool


def send(line: Connection, thing: Any) -> None:
    """Send an object of this very program to another process of it."""
    # Not `line.send`: it would move tensors into shared memory, whose handles outlive a killed process.
    line.send_bytes(pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL))


def receive(line: Connection) -> Any:
    """Wait for what another process of this program sends.

    Raises:
        EOFError: when it is gone.
        LostError: when it has refused its part.
        FollowerError: when it has failed.
    """
    thing = pickle.loads(line.recv_bytes())
    if isinstance(thing, Failure):
        raise LostError(thing.text) if thing.refused else FollowerError(thing.text)
    return thing


class LeaderLink:
    """The first process's end of all lines.

    Attributes:
        rank: 0.
        size: processes.
    """

    rank = 0

    def __init__(self, lines: Sequence[Connection]) -> None:
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

    def __init__(self, line: Connection, rank: int, size: int) -> None:
        """Takes the line to the first process."""
        self._line, self.rank, self.size = line, rank, size

    def exchange(self, mine: Mapping[int, Done]) -> dict[int, Done]:
        """Tell the first process, and hear from it what all came to."""
        send(self._line, dict(mine))
        found: dict[int, Done] = receive(self._line)
        return found
