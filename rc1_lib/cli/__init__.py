"""The command line: `rc1 COMMAND`. Each command parses, calls the library and prints; nothing is decided here."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

_SHARED = ("train", "plan", "learnability", "evaluate")
"""Commands whose work is shared by a launcher's processes; a plan times steps as the training will run them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    Exit codes: 0 all passed; 1 a fault of the program or the machine; 2 a gate, a ticket, a configuration, an input or
    a flag was refused; 130 interrupted.

    Args:
        arguments: default: those of the process.
    """
    from rc1_lib.cli.streams import STDOUT, lasting_streams

    try:
        with lasting_streams():
            _run(arguments)
    except OSError as error:  # of a help page, or of the last words; a command says so by itself
        if error.filename != STDOUT:
            raise
        print(f"FATAL: {STDOUT}: cannot be written ({error.strerror})", file=sys.stderr)
        sys.exit(1)
    finally:
        if arguments is None:
            gc.freeze()  # the process ends: a last search for cycles among all that was imported took up to a second


def _run(arguments: Sequence[str] | None) -> None:
    from rc1_lib.cli.app import app
    from rc1_lib.cli.command import FAULT, INTERRUPTED, REFUSED

    given = sys.argv[1:] if arguments is None else list(arguments)
    for argument in given:
        try:
            str(argument).encode()
        except UnicodeEncodeError:
            print(f"rc1: {argument!a}: is not UTF-8, expected arguments in UTF-8; write it again", file=sys.stderr)
            sys.exit(REFUSED)

    if given[:1] and given[0] in _SHARED and not _leads():
        return

    try:
        app(None if arguments is None else list(arguments), prog_name="rc1")
    except SystemExit as ending:
        if arguments is None and ending.code in (FAULT, INTERRUPTED):
            # All is said and written. Prefect's threads would try for minutes to reach a server that has ended.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ending.code)
        raise


def _leads() -> bool:
    """Whether this process runs the command: only the first one of those that a launcher started.

    The others do what it says, until it has ended.
    """
    from rc1_lib.cli.command import REFUSED
    from rc1_lib.errors import RC1Error
    from rc1_lib.runtime.libraries import quieten
    from rc1_lib.training.ranks.launch import forget_launch, launch_of

    try:
        launch = launch_of(os.environ)
        if launch is None:
            forget_launch(os.environ)  # a launcher of one process says how to compute, too
            return True
        if launch.rank:
            quieten(hub=False)
        from rc1_lib.training.ranks.launched import join

        return join(launch)
    except RC1Error as error:
        print(f"rc1: {error}", file=sys.stderr)
        sys.exit(REFUSED)
