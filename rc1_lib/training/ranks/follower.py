"""A follower: a process that does with its shards what the first process does with its own, until that one is gone.

`python -m rc1_lib.training.ranks.follower FD RANK SIZE`, started by `started`.
"""

from __future__ import annotations

import gc
import signal
import sys
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.training.ranks.link import Failure, FollowerLink, Line, receive, send

BEGIN, DONE, SOON = "begin", "done", "soon"


def follow(line: Line, rank: int, size: int) -> None:
    """Do what the first process says, in its order, until it says no more.

    It says the name of a method and its arguments, and hears when that is done. `BEGIN` makes the object whose
    methods they are; `SOON` names its class in advance, and is answered by nothing.
    """
    link, worker = FollowerLink(line, rank, size), None
    while True:
        name = ""
        try:
            name, arguments = receive(line)
            if name == SOON:
                _imported(*arguments)
                continue
            if name == BEGIN:
                worker = None  # two policies at once would need twice the memory
                gc.collect()
                worker = _made(link, *arguments)
            else:
                getattr(worker, name)(*arguments)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:
            if name == SOON:
                continue  # nobody waits for an answer to it; `BEGIN` fails in the same way, and says so
            # A fault of the work meets the first process too, and its own word counts then.
            send(line, _failure(error, f"process {rank + 1} of {size}: "))
            return
        send(line, DONE)


def _failure(error: Exception, who: str) -> Failure:
    if isinstance(error, RC1Error):
        return Failure(f"{who}{error}", refused=True)
    from rc1_lib.training.resource_errors import shortage  # imports torch; a follower has to be there before that

    lacking = shortage(error)
    what = traceback.format_exc()
    return Failure(f"{who}{str(error) or type(error).__name__}\n{what}" if lacking else f"{who}{what}", False, lacking)


def _made(link: FollowerLink, place: str, setup: Any) -> Any:
    return _imported(place).following(link, setup)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def main() -> None:
    """Follow over the given end of a line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides; this one ends with its line
    descriptor, rank, size = map(int, sys.argv[1:])
    try:
        follow(Connection(descriptor), rank, size)
    except (EOFError, ConnectionError):
        return


if __name__ == "__main__":
    main()
