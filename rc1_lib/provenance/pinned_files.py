"""What a ticket vouches for, compared as it is read.

A ticket that was verified leaves its fingerprints with the run (`Run.vouched`). From then on whoever opens one of these
files hands over the bytes that were read, so that nothing can be put in its place between the check and the reading. A
folder is read by a library: it is compared before and after. A run without a ticket reads what is there.
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
    """Compare a fingerprint with the one that the ticket names.

    Args:
        run: with or without a ticket.
        name: what was read, as the ticket calls it.
        path: where it lies, for the refusal.
        sha256: of what was read; None where it is not there.

    Raises:
        TicketError: when the ticket vouches for something else, or for nothing of that name.
    """
    if run.vouched is None:
        return
    shown = run.workspace.name(path)
    again = "put back what the preflight read, or run `rc1 preflight` again"
    if name not in run.vouched:
        raise TicketError(f"{shown}: the ticket does not vouch for {name}, so training does not read it; {again}")
    if sha256 is None:
        raise TicketError(f"{shown} was removed after the ticket that pins it ({name}) was verified; {again}")
    if sha256 != run.vouched[name]:
        raise TicketError(
            f"{shown} has changed since the ticket that vouches for it ({name}) was verified: found SHA-256 "
            f"{sha256[:12]}, expected {run.vouched[name][:12]}; {again}"
        )


def read_vouched(run: Run, name: str, path: Path) -> bytes:
    """The bytes of a file, which are those that the ticket vouches for.

    Raises:
        TicketError: when they are not.
        RC1Error: when the file cannot be read.
    """
    try:
        content = read_regular(path)
    except FileNotFoundError:
        check_vouched(run, name, path, None)
        raise RC1Error(f"{path}: is not there; run `rc1 preflight`") from None
    except OSError as error:
        raise RC1Error(f"{path}: cannot be read ({error.strerror}), expected a file") from None
    if run.vouched is not None:
        check_vouched(run, name, path, hashlib.sha256(content).hexdigest())
    return content


@contextmanager
def reading_vouched(run: Run, name: str, path: Path, hashed: Callable[[Path], str]) -> Iterator[None]:
    """Compare a folder before it is read and when it was read.

    Args:
        run: with or without a ticket.
        name: what is read, as the ticket calls it.
        path: the folder.
        hashed: its fingerprint, by the rule that the ticket's was taken by.

    Raises:
        TicketError: when it is not what the ticket vouches for.
    """
    if run.vouched is None:
        yield
        return
    check_vouched(run, name, path, hashed(path) if path.is_dir() else None)
    yield
    check_vouched(run, name, path, hashed(path) if path.is_dir() else None)
