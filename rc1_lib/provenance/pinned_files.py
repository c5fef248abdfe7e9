"""Read files that a ticket pins, and compare them while they are read.

A verified ticket leaves its fingerprints with the run (`Run.vouched`). From then on each of these files is hashed from
the very bytes that are used, so that it cannot be replaced between check and use. A folder is read by a library, so it
is compared before and after. A run without a ticket compares nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.run import Run
from rc1_lib.workspace.input_files import read_regular


def check_vouched(run: Run, name: str, path: Path, sha256: str | None) -> None:
    """Compare a fingerprint with the ticket's.

    Args:
        run: the run, with or without a ticket.
        path: its path, for the error.
        sha256: the fingerprint of what was read; None if the file is missing.

    Raises:
        TicketError: when the ticket has another fingerprint, or none of that name.
    """
    if run.vouched is None:
        return
    shown = run.workspace.name(path)
    again = "restore the file that the preflight read, or run `rc1 preflight` again"
    if name not in run.vouched:
        raise TicketError(f"{shown}: the ticket does not pin {name}, so training does not read it; {again}")
    if sha256 is None:
        raise TicketError(f"{shown} was removed after the ticket that pins it ({name}) was verified; {again}")
    if sha256 != run.vouched[name]:
        raise TicketError(
            f"{shown} has changed since the ticket that pins it ({name}) was verified: found SHA-256 "
            f"{sha256[:12]}, expected {run.vouched[name][:12]}; {again}"
        )


def read_vouched(run: Run, name: str, path: Path) -> bytes:
    """Return the bytes of a file, which must be those that the ticket pins.

    Raises:
        TicketError: when they are not.
        RC1Error: when the file cannot be read.
    """
    try:
        content = read_regular(path)
    except FileNotFoundError:
        check_vouched(run, name, path, None)
        raise RC1Error(f"{path}: file not found; run `rc1 preflight`") from None
    except OSError as error:
        raise RC1Error(f"{path}: cannot be read ({error.strerror}); expected a file") from None
    if run.vouched is not None:
        check_vouched(run, name, path, hashlib.sha256(content).hexdigest())
    return content


@contextmanager
def reading_vouched(run: Run, name: str, path: Path, hashed: Callable[[Path], str]) -> Iterator[None]:
    """Compare a folder with the ticket before and after it is read inside the block.

    Args:
        run: the run, with or without a ticket.
        name: the ticket's name for the folder.
        path: the folder.
        hashed: computes its fingerprint, as for the ticket.

    Raises:
        TicketError: when it is not the one that the ticket pins.
    """
    if run.vouched is None:
        yield
        return
    check_vouched(run, name, path, hashed(path) if path.is_dir() else None)
    yield
    check_vouched(run, name, path, hashed(path) if path.is_dir() else None)
