"""The worker processes that share the work of one engine: what the first process calls, they call too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from rc1_lib.training.memory import oom_kills
from rc1_lib.training.ranks.channel import Channel, LeaderLink, LostError, receive, send
from rc1_lib.training.ranks.worker import BEGIN, DONE

GO_ON = (
    "the step it was part of is lost, the checkpoints are not: run the same command again and it goes on from the "
    "newest one"
)
"""What to do where a process was lost."""
KILLED = "the kernel has ended a process since, because memory was full"
"""Why it was, where the kernel says so."""


class WorkerGroup(ABC):
    """Workers, and the channels to them.

    Attributes:
        link: this process's end of the channels.
        to_go_on: what to do where it was closed.
    """

    to_go_on: ClassVar[str]

    def __init__(self, channels: Sequence[Channel]) -> None:
        """Takes the channel to each worker."""
        assert channels, "a group of one"
        self._killed_before = oom_kills()
        self._channels = list(channels)
        self.link = LeaderLink(self._channels)

    @abstractmethod
    def release(self) -> None:
        """Keep it for the next engine."""
        ...

    @abstractmethod
    def _loss(self, error: Exception) -> LostError:
        """Which worker ended and why, as far as its broken channel and its exit code show."""
        ...

    def _killed_for_memory(self) -> bool:
        """Whether the kernel has ended a process of this machine since the group is there, because memory was full."""
        return oom_kills() > self._killed_before

    @property
    def whole(self) -> bool:
        """Whether no worker is known to be gone."""
        return bool(self._channels)

    @contextmanager
    def constructing(self, place: str, setup: Any) -> Iterator[None]:
        """While every worker constructs its object; the first process constructs its own inside.

        Args:
            place: `module:Class`; the class has `as_worker(link, setup)`.
            setup: its second argument.

        Raises:
            LostError: when a worker ended or refused; this and any other error inside closes the group.
            WorkerError: when one has failed.
        """
        with self._guarded():
            self._broadcast(BEGIN, (place, setup))
            yield
            self._wait_for_all()

    @contextmanager
    def calling(self, name: str, arguments: tuple[Any, ...]) -> Iterator[None]:
        """While every worker calls its method `name`; the first process calls its own inside.

        Raises:
            LostError: when a worker ended or refused; this and any other error inside closes the group.
            WorkerError: when one has failed.
        """
        with self._guarded():
            self._broadcast(name, arguments)
            yield
            self._wait_for_all()

    def close(self) -> None:
        """Close all channels; what the workers were doing is dropped."""
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def _broadcast(self, name: str, arguments: tuple[Any, ...]) -> None:
        if not self._channels:
            raise LostError(f"the processes that shared this work were ended; {self.to_go_on}")
        for channel in self._channels:
            send(channel, (name, arguments))

    def _wait_for_all(self) -> None:
        for channel in self._channels:
            said = receive(channel)
            assert said == DONE, f"a worker sent {said!r}, expected {DONE!r}"

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            loss = self._loss(error)
            self.close()
            raise loss from error
        except BaseException:
            # The workers may be anywhere in their part, so they cannot be used again.
            self.close()
            raise
