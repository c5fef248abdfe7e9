"""A worker process: does with its shards what the first process does with its own, until that one ends.

`python -m rc1_lib.training.ranks.worker FD RANK SIZE`, started by `started`.
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
from rc1_lib.training.ranks.channel import Channel, Failure, WorkerLink, receive, send

BEGIN, DONE = "begin", "done"


def work(channel: Channel, rank: int, size: int) -> None:
    """Call the methods that the first process names, in its order, until its channel closes.

    A message is the name of a method and its arguments; the reply is `DONE` or a failure. `BEGIN` constructs the object
    whose methods they are.
    """
    link, engine = WorkerLink(channel, rank, size), None
    while True:
        name = ""
        try:
            name, arguments = receive(channel)
            if name == BEGIN:
                engine = None  # two policies at once would need twice the memory
                gc.collect()
                engine = _made(link, *arguments)
            else:
                getattr(engine, name)(*arguments)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:
            # An error of the work itself meets the first process too, which then raises its own.
            send(channel, _failure(error, f"process {rank + 1} of {size}: "))
            return
        send(channel, DONE)


def _failure(error: Exception, who: str) -> Failure:
    if isinstance(error, RC1Error):
        return Failure(f"{who}{error}", refused=True)
    from rc1_lib.training.resource_errors import shortage  # imports torch; a worker has to be there before that

    lacking = shortage(error)
    what = traceback.format_exc()
    return Failure(f"{who}{str(error) or type(error).__name__}\n{what}" if lacking else f"{who}{what}", False, lacking)


def _made(link: WorkerLink, place: str, setup: Any) -> Any:
    return _imported(place).as_worker(link, setup)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def main() -> None:
    """Work for the process at the other end of the given file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides; this one ends with its channel
    descriptor, rank, size = map(int, sys.argv[1:])
    try:
        work(Connection(descriptor), rank, size)
    except (EOFError, ConnectionError):
        return


if __name__ == "__main__":
    main()
