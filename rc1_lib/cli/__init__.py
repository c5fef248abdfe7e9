"""The command line, `rc1 COMMAND`: each command parses its options, calls the library and prints the result."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rc1_lib.training.ranks.group import Group

_SHARED = ("train", "plan", "doctor", "evaluate")
"""Commands that a launcher may start in several processes; `plan` times steps the way training will run them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    Exit codes: 0 all passed; 1 a fault of the program or the machine; 2 a gate failed, or RC1 rejected a ticket, a
    configuration, an input or a flag; 130 interrupted.

    Args:
        arguments: the words after `rc1`; default: those of the process.
    """
    from rc1_lib.cli.streams import STDOUT, lasting_streams
    from rc1_lib.runtime.libraries import own_environment

    own_environment()
    try:
        with lasting_streams():
            _run(arguments)
    except OSError as error:  # while a help page or the final flush is written; commands handle their own
        if error.filename != STDOUT:
            raise
        print(f"FATAL: {STDOUT}: cannot be written ({error.strerror})", file=sys.stderr)
        sys.exit(1)
    finally:
        if arguments is None:
            gc.freeze()  # the process ends; the interpreter's last garbage collection took up to a second


def _run(arguments: Sequence[str] | None) -> None:
    from rc1_lib.cli.app import app
    from rc1_lib.cli.command import FAULT, INTERRUPTED, REFUSED

    given = sys.argv[1:] if arguments is None else list(arguments)
    for argument in given:
        try:
            str(argument).encode()
        except UnicodeEncodeError:
            print(f"rc1: {argument!a}: is not valid UTF-8; type the argument again in UTF-8", file=sys.stderr)
            sys.exit(REFUSED)

    if given[:1] and given[0] in _SHARED and not _leads():
        return

    try:
        app(None if arguments is None else list(arguments), prog_name="rc1")
    except SystemExit as ending:
        if arguments is None and ending.code in (FAULT, INTERRUPTED):
            # All output is written. Prefect's threads would try for minutes to reach a server that has stopped.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ending.code)
        raise


def _leads() -> bool:
    """Return whether this process runs the command; of a launcher's processes only the first one does.

    The others follow its instructions and return False when it has finished.
    """
    from rc1_lib.cli.command import REFUSED
    from rc1_lib.cli.streams import visible
    from rc1_lib.errors import RC1Error
    from rc1_lib.runtime.libraries import quieten
    from rc1_lib.training.ranks.launched import forget_launch, join, launch_of

    try:
        launch = launch_of(os.environ)
        if launch is None:
            forget_launch(os.environ)  # a launcher of one process sets variables too
            return True
        if launch.rank:
            quieten(hub=False)
        return join(launch, _follow)
    except RC1Error as error:
        print(f"rc1: {visible(str(error))}", file=sys.stderr)
        sys.exit(REFUSED)


def _follow(group: Group) -> None:
    """Take part in the steps of the first process. A worker imports here what the first process imports later."""
    from rc1_lib.training.engine import follow

    follow(group)
