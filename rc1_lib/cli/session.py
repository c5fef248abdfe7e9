"""The session of one command: it opens the run, prints tables or JSON, and shows progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, overload

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from rc1_lib.cli.options import Options, source
from rc1_lib.cli.streams import terminal, visible
from rc1_lib.errors import ConfigError
from rc1_lib.runtime.libraries import quieten
from rc1_lib.runtime.progress import PASSING_NOTES, REPEATED, listening
from rc1_lib.workspace.artifacts import Workspace, default_root

if TYPE_CHECKING:
    from rc1_lib.run import Run

_BAR_WIDTH = 12
_EVERY_S = 10.0
"""Shortest time between two progress lines of one stage when there is no terminal."""
WIDTH = 100
"""Columns of the output: at most this many on a terminal, exactly this many elsewhere."""
VERIFIED = ("training.reward.success=1", "training.reward.judge=0")
"""What `--reward verified` is short for."""
Report = Callable[[int, int], None]


@dataclass(slots=True)
class Session:
    """The options, the run and the output of one command."""

    options: Options
    stdout: TextIO
    """Where the JSON document goes; tables go to `sys.stdout`, which is stderr with --json."""
    run: Run | None = None
    """None until `open`."""
    overrides: tuple[str, ...] = ()
    """What the command line overrides in the configuration, without the environment's overrides."""
    common: tuple[str, ...] = ()
    """The part of `overrides` that comes from the shared options, not from the command's own flags."""
    recorded: str | None = None
    """The workspace's recorded configuration, if the run was opened by it."""
    documented: bool = False
    """Whether the JSON document was printed."""

    @property
    def workspace(self) -> Workspace:
        """The folder that the command writes to."""
        return Workspace(root_of(self.options))

    def open(
        self,
        flags: Mapping[str, Any] | None = None,
        reading: Mapping[str, str | None] | None = None,
        *,
        remembered: bool = False,
    ) -> Run:
        """Open the run. Later settings win: the file, `--set`, `--reward`, `--sources`, the command's own flags.

        Args:
            flags: configuration key -> the value of the command's own flag, or None.
            reading: key -> a file to read instead of the one that RC1 writes, or None; see `given`.
            remembered: whether, without `--config`, the settings that the workspace has recorded come first.
        """
        from rc1_lib.run import check_remembered_addresses, open_run, remembered_config

        options = self.options
        verified = VERIFIED if options.reward == "verified" else ()
        self.common = (*options.settings, *verified, *_overrides({"sources.use": source(options.sources)}))
        self.overrides = (*self.common, *_overrides(flags or {}))
        self.recorded = remembered_config(options.workspace) if remembered and options.config is None else None
        self.run = open_run(
            profile=options.profile,
            config=options.config or self.recorded,
            overrides=self.overrides,
            workspace=options.workspace,
            reading={key: path for key, path in (reading or {}).items() if path is not None},
        )
        if self.recorded is not None:
            check_remembered_addresses(self.run, self.overrides)
        return self.run

    def show(self, *what: RenderableType) -> None:
        """Print for people; with --json print nothing."""
        if not self.options.as_json:
            console = Console(file=sys.stdout, highlight=False)
            if not console.is_terminal or console.width > WIDTH:
                console.width = WIDTH
            for one in what:
                # Sentences and paths are not wrapped here: the terminal does it, and a copied path stays whole.
                if isinstance(one, str):
                    console.print(visible(one), soft_wrap=True, markup=False)
                else:
                    console.print(one, markup=False)

    def document(self, value: Any) -> None:
        """Print the JSON document if --json was given. NaN becomes null."""
        if self.options.as_json:
            import orjson

            self.documented = True
            text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
            try:
                text.encode(self.stdout.encoding or "utf-8")
            except UnicodeEncodeError:
                text = json.dumps(json.loads(text), indent=2)  # in ASCII
            self.stdout.write(text + "\n")
            self.stdout.flush()

    def pack_failure(self) -> Path:
        """Write the failure package of the run, or of the workspace; a refused configuration is packed too."""
        from rc1_lib.failpack import write_failpack

        return write_failpack(self.run or self.workspace, [self.options.config] if self.options.config else [])

    @contextmanager
    def progress(self, title: str) -> Iterator[Report]:
        """Show a progress bar if stderr is a terminal; yields a function to call with (done, total)."""
        shown = terminal().isatty()
        with Progress(console=Console(file=terminal()), transient=True, disable=not shown) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def inside(self, flag: str, path: Path | None) -> str | None:
        """Return the path of a file to be written, relative to the workspace.

        Raises:
            ConfigError: when it is a folder, or outside the workspace.
        """
        if path is None:
            return None
        target = self._below(flag, path)
        if target.is_dir():
            raise ConfigError(f"{flag} {path}: is a folder, expected a file to write")
        return target.relative_to(self.workspace.root).as_posix()

    def report(self, flag: str, path: Path | None, keys: Collection[str]) -> str | None:
        """Like `inside`, for a report that may overwrite an earlier report of the same kind, but no other file.

        Args:
            flag: the option, for errors.
            keys: what identifies an earlier report: its keys, or those of its first line.

        Raises:
            ConfigError: as `inside` does, and when another file is there.
        """
        target = self.inside(flag, path)
        if target is not None and (there := self.workspace.path(target)).exists() and not _holds(there, keys):
            raise ConfigError(
                f"{flag} {path}: exists and is not an earlier report of this command, so it is not overwritten; name "
                f"another file, or move this one away"
            )
        return target

    def new_folder(self, flag: str, path: Path | None, default: str = "") -> Path:
        """Return the full path of a folder to write, `default` if none is named.

        Raises:
            ConfigError: when it is outside the workspace.
        """
        return self.workspace.path(default) if path is None else self._below(flag, path)

    def _below(self, flag: str, path: Path) -> Path:
        root = self.workspace.root
        target = (root / path).resolve()
        if not target.is_relative_to(root) or target == root:
            raise ConfigError(
                f"{flag} {path}: is outside the workspace {root}; name a path below it, or set --workspace"
            )
        return target

    @overload
    def given(self, path: Path) -> str: ...

    @overload
    def given(self, path: Path | None) -> str | None: ...

    def given(self, path: Path | None) -> str | None:
        """Return the path of an input: below the workspace if it exists there, else below the current folder."""
        if path is None:
            return None
        own = (self.workspace.root / path).resolve()
        if not own.exists() and path.resolve().exists():
            own = path.resolve()
        return own.relative_to(self.workspace.root).as_posix() if own.is_relative_to(self.workspace.root) else str(own)


def root_of(options: Options) -> Path:
    """Return the workspace's folder.

    Raises:
        RC1Error: when none is named and the current folder is not a workspace.
    """
    return options.workspace.resolve() if options.workspace else default_root()


def _holds(path: Path, keys: Collection[str]) -> bool:
    """Return whether a file, or its first line, is a JSON object with these keys."""
    import orjson

    from rc1_lib.workspace.input_files import open_regular

    try:
        with open_regular(path) as stream:
            first = stream.readline()
            found = orjson.loads(first if first.strip() != b"{" else first + stream.read())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.keys() >= set(keys)


def _overrides(flags: Mapping[str, Any]) -> list[str]:
    """Return `key=value` for every flag that is not None; values are JSON, which YAML reads too."""
    given = {key: value for key, value in flags.items() if value is not None}
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]


@contextmanager
def stages() -> Iterator[None]:
    """Show the progress of each stage on stderr inside the block."""
    if not terminal().isatty():
        with listening(_Lines().report):
            yield
        return
    # In a narrow terminal the note is cut, since its length is not known in advance.
    note = TextColumn(
        "{task.fields[note]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
    )
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True)), BarColumn(bar_width=_BAR_WIDTH),
        MofNCompleteColumn(), TimeElapsedColumn(), note,
    )  # fmt: skip
    ids: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int, note: str) -> None:
        note = visible(note)
        if stage not in ids:
            ids[stage] = bars.add_task(stage, total=total, note=note)
        bars.update(ids[stage], completed=done, total=total, note=note)

    with Progress(*columns, console=Console(file=terminal()), expand=True) as bars, listening(report):
        yield


class _Lines:
    """Print progress as lines: every note, bare counts now and then, and the end of each stage once."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.shown: dict[str, float] = {}
        self.ended: dict[str, int] = {}

    def report(self, stage: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        passing = stage in PASSING_NOTES
        if passing and done == total and self.ended.get(stage) == total:
            return
        self.ended[stage] = total if done == total else -1
        ended = done == total and stage not in REPEATED
        if (note and not passing) or ended or now - self.shown.get(stage, 0.0) >= _EVERY_S:
            self.shown[stage] = now
            print(
                f"[{now - self.begun:6.1f} s] {stage}: {done}/{total} {visible(note)}".rstrip(),
                file=sys.stderr,
                flush=True,
            )


def quieten_models(run: Run) -> None:
    """Silence the notices of the model libraries; keep progress bars if the base has to be downloaded."""
    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
