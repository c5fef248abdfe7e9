"""What all commands share: the common options, the log, and the one place where errors become exit codes."""

from __future__ import annotations

import errno
import inspect
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, get_type_hints

import typer

from rc1_lib.cli.endings import after_refusal
from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session, root_of
from rc1_lib.cli.streams import FULL, STDOUT, logbook, visible
from rc1_lib.errors import RC1Error
from rc1_lib.failpack import write_error
from rc1_lib.runtime.libraries import check_training, extra_of
from rc1_lib.workspace.artifacts import is_workspace
from rc1_lib.workspace.folder import little_room

Function = Callable[..., int]
REFUSED, FAULT, INTERRUPTED = 2, 1, 130
_NO_PATH = {
    errno.ELOOP: "is a link that leads back to itself; expected a file or a folder",
    errno.ENAMETOOLONG: "is too long for this file system; shorten each name to at most 255 bytes",
}
_NO_ROOM = 2**20
"""Bytes: with less than this free, the full disk explains why a server or a database failed."""
_NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
_THREADS = "POLARS_MAX_THREADS"
_STOPPED = "\nrc1: stopped (SIGTERM); files are written whole or not at all, so run the command again\n"
_SHOWN = 100
"""The longest path, in characters, that a message repeats in full."""


CODES = "Exit codes: 0 pass, 1 a fault, 2 refused or failed, 130 interrupted."


def command(
    app: typer.Typer,
    name: str,
    function: Function,
    example: str,
    without: Collection[str] = (),
    *,
    panel: str | None = None,
    codes: str = CODES,
    **how: Any,
) -> None:
    """Register `function(session, **own options) -> exit code` with the fields of `Options` added to its own.

    Args:
        example: a command line, for the help.
        without: fields of `Options` that the command does not take. A field that the command defines itself is left
            out too; without `overrides`, so are `sources` and `reward`.
        panel: the heading under which the list of commands shows it.
        codes: what its exit codes mean.
        how: keyword arguments of `run_command`.
    """
    own = list(inspect.signature(function).parameters.values())[1:]
    left_out = {*without, *(given.name for given in own), *(["sources", "reward"] if "overrides" in without else [])}
    common = [given for given in inspect.signature(Options).parameters.values() if given.name not in left_out]
    hints = get_type_hints(function, include_extras=True) | get_type_hints(Options, include_extras=True)

    def entry(**values: Any) -> None:
        options = Options(**{parameter.name: values.pop(parameter.name) for parameter in common})
        sys.exit(run_command(function, options, values, **how))

    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in (*own, *common)]
    entry.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    entry.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    entry.__doc__ = "\n\n".join(" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n"))
    app.command(name, epilog=f"Example: {example}\n\n{codes}", rich_help_panel=panel)(entry)


def run_command(
    function: Function,
    options: Options,
    values: dict[str, Any],
    *,
    writes: bool = True,
    anywhere: bool = False,
    anywhere_with: str = "",
    trains: bool = False,
    also: str = "",
) -> int:
    """Run a command and return its exit code.

    Args:
        options: shared with the other commands.
        writes: whether it may write; its output is then logged, and a fault leaves a report and a failure package.
        anywhere: whether it works without a workspace; it then writes no log.
        anywhere_with: the option of its own with which it does.
        trains: whether it needs the extra `train`.
        also: a second log of its output, below the workspace.
    """
    anywhere = anywhere or values.get(anywhere_with) is not None
    if anywhere and options.workspace is None and not is_workspace(Path.cwd()):
        options, writes = replace(options, workspace=Path.cwd()), False
    try:
        if trains:
            check_training()
        if re.fullmatch(r"\+?0+", os.environ.get(_THREADS, "")):  # the one number at which polars panics
            raise RC1Error(f"{_THREADS}: found 0, expected 1 or more; raise it, or unset it for one thread a core")
        sources = Path(options.sources) if options.sources else None
        for name, value in (("workspace", options.workspace), ("config", options.config), ("sources", sources)):
            _check_path(name, value)
        for name, value in values.items():
            _check_path(name, value, root_of(options))
        if root_of(options).is_file():
            raise RC1Error(f"--workspace {options.workspace}: is a file, expected a folder")
        with logbook(root_of(options), also) if writes else nullcontext() as log:
            session = Session(options, sys.stdout)
            with redirect_stdout(sys.stderr if options.as_json else sys.stdout):
                return _guarded(function, session, values, log)
    except RC1Error as error:  # raised before the log exists
        print(f"rc1: {visible(str(error))}", file=sys.stderr)
        Session(options, sys.stdout).document({"exit_code": REFUSED, "error": str(error), "failpack": None})
        return REFUSED


def _check_path(name: str, value: Any, root: Path = Path()) -> None:
    """Reject the next option in place of a path, and a path, as given or below `root`, that no file system resolves."""
    if not isinstance(value, Path):
        return
    if str(value).startswith("-"):
        raise RC1Error(
            f"{name.replace('_', '-')}: found the option {value}, expected a path (./{value} if you mean one)"
        )
    try:
        for place in (value, root / value):
            with suppress(FileNotFoundError):
                os.stat(place)
    except OSError as error:
        if error.errno in _NO_PATH:
            shown = str(value) if len(str(value)) <= _SHOWN else f"{str(value)[:_SHOWN]}..."
            raise RC1Error(f"{name.replace('_', '-')} {shown}: {_NO_PATH[error.errno]}") from None


def _guarded(function: Function, session: Session, values: dict[str, Any], log: Path | None) -> int:
    code, words, following = FAULT, "", ""
    try:
        with _stopping():
            return function(session, **values)
    except RC1Error as error:
        code, words = REFUSED, "; ".join([str(error), *getattr(error, "__notes__", ())])
        following = after_refusal(session, error)
        print(f"rc1: {visible(words)}", file=sys.stderr)
    except KeyboardInterrupt:
        code, words = INTERRUPTED, "interrupted"
        print("rc1: interrupted; files are written whole or not at all, so run the command again", file=sys.stderr)
    except typer.Exit:
        raise
    except Exception as error:  # the boundary: whatever else happens is a fault, reported and packed
        if lacking := _lacking_right(error) or extra_of(error):
            code, words = REFUSED, lacking
            print(f"rc1: {visible(words)}", file=sys.stderr)
        else:
            words = _words(error, session.workspace.root)
            print(f"FATAL: {visible(words)}", file=sys.stderr)
            if log is not None:
                _leave("error report", partial(write_error, session.workspace, error, log))
    packed = log is not None and code == FAULT  # of a refusal its sentence says all
    package = _leave("failure package", session.pack_failure) if packed else None
    if following:
        print(visible(following), file=sys.stderr)
    if not session.documented:
        session.document({"exit_code": code, "error": words, "failpack": package})
    return code


@contextmanager
def _stopping() -> Iterator[None]:
    """Inside the block SIGTERM still ends the process, but first prints how to continue."""
    if threading.current_thread() is not threading.main_thread():  # only that one may handle signals
        yield
        return
    process = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == process:  # forked workers stay silent
            os.write(2, _STOPPED.encode())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        os._exit(128 + number)  # the first process of a container does not end by a signal that it sends itself

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _lacking_right(error: Exception) -> str:
    """Return which place the user may not read or write, and what to do; "" for any other error."""
    if not isinstance(error, OSError) or error.errno not in _NO_RIGHT or not error.filename:
        return ""
    path = Path(str(error.filename))
    place = path.parent if path.suffix == ".tmp" else path  # the user has never heard of a temporary file
    return (
        f"{place}: cannot be used ({error.strerror}); give yourself the right to read and write there, or name another "
        f"--workspace"
    )


def _words(error: Exception, root: Path) -> str:
    """Return what went wrong and, if a disk is full, what to do, even if another process found it full."""
    if isinstance(error, OSError) and error.errno in FULL:
        where = f"{error.filename}: " if error.filename else ""
        other = "send it elsewhere" if error.filename == STDOUT else "name another --workspace"
        return f"{where}cannot be written ({error.strerror}); free space or {other}, then run it again"
    said = str(error) or type(error).__name__
    return said if "free space" in said else said + little_room(root, _NO_ROOM)  # a server says so by itself


def _leave(what: str, write: Callable[[], Path]) -> str | None:
    """Write a report or package of a failure; an error while writing must not hide the failure itself."""
    try:
        path = write()
    except (OSError, RC1Error) as error:
        print(f"rc1: the {what} could not be written: {visible(str(error))}", file=sys.stderr)
        return None
    print(f"rc1: {what}: {visible(str(path))}", file=sys.stderr)
    return str(path)
