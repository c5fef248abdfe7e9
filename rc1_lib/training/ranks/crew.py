"""What leads the processes that share the work of one engine: the words that make its followers do what it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from rc1_lib.training.memory import oom_kills
from rc1_lib.training.ranks.follower import BEGIN, DONE, SOON
from rc1_lib.training.ranks.link import LeaderLink, Line, LostError, receive, send

GO_ON = (
    "the step it was part of is lost, the checkpoints are not: run the same command again and it goes on from the "
    "newest one"
)
"""What to do where a process was lost."""
KILLED = "the kernel has ended a process since, because memory was full"
"""Why it was, where the kernel says so."""


class Crew(ABC):
    """Followers, and the lines to them.

    Attributes:
        link: this process's end of the lines.
        to_go_on: what to do where it was closed.
    """

    to_go_on: ClassVar[str]

    def __init__(self, lines: Sequence[Line]) -> None:
        """Takes the line to each follower."""
        assert lines, "a crew of one"
        self._killed_before = oom_kills()
        self._lines = list(lines)
        self.link = LeaderLink(self._lines)

    @abstractmethod
    def give_back(self) -> None:
        """Have it wait for the next engine that takes one."""
        ...

    @abstractmethod
    def _loss(self, error: Exception) -> LostError:
        """Which follower is gone and why, as far as it can be known from how its line broke."""
        ...

    def _killed_for_memory(self) -> bool:
        """Whether the kernel has ended a process of this machine since the crew is there, because memory was full."""
        return oom_kills() > self._killed_before

    @property
    def whole(self) -> bool:
        """Whether no follower is known to be gone."""
        return bool(self._lines)

    def foretell(self, place: str) -> None:
        """Have the followers import what they will be asked to make, while this process does something else.

        Args:
            place: `module:Class`.
        """
        with self._guarded():
            self._tell(SOON, (place,))

    @contextmanager
    def beginning(self, place: str, setup: Any) -> Iterator[None]:
        """Inside, every follower makes what it is to work with; make one's own meanwhile.

        Args:
            place: `module:Class`; the class has `following(link, setup)`.
            setup: what it is made of.

        Raises:
            LostError: when a follower is gone or refuses; the crew is closed then, as after any other error inside.
            FollowerError: when one has failed.
        """
        with self._guarded():
            self._tell(BEGIN, (place, setup))
            yield
            self._hear()

    @contextmanager
    def doing(self, name: str, arguments: tuple[Any, ...]) -> Iterator[None]:
        """Inside, every follower does what its method `name` does; do the same meanwhile.

        Raises:
            LostError: when a follower is gone or refuses; the crew is closed then, as after any other error inside.
            FollowerError: when one has failed.
        """
        with self._guarded():
            self._tell(name, arguments)
            yield
            self._hear()

    def close(self) -> None:
        """Tell the followers nothing more; whatever they were at is dropped."""
        for line in self._lines:
            line.close()
        self._lines.clear()

    def _tell(self, name: str, arguments: tuple[Any, ...]) -> None:
        if not self._lines:
            raise LostError(f"the processes that shared this work were ended; {self.to_go_on}")
        for line in self._lines:
            send(line, (name, arguments))

    def _hear(self) -> None:
        for line in self._lines:
            said = receive(line)
            assert said == DONE, f"a follower said {said!r}, expected that it is done"

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            loss = self._loss(error)
            self.close()
            raise loss from error
        except BaseException:
            # Where the followers stand now is not known, so nothing more can be done with them.
            self.close()
            raise
