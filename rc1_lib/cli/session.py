"""What a command works with: it opens the run, prints tables or JSON, and shows progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, overload

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from rc1_lib.cli.options import Options, source
from rc1_lib.cli.streams import terminal
from rc1_lib.errors import ConfigError
from rc1_lib.runtime.libraries import quieten
from rc1_lib.runtime.progress import PASSING_NOTES, REPEATED, listening
from rc1_lib.workspace.artifacts import Workspace, default_root

if TYPE_CHECKING:
    from rc1_lib.run import Run

_BAR_WIDTH = 12
_EVERY_S = 10.0
"""Shortest time between two lines of the same counting stage where there is no terminal."""
SOME = 40
"""Lines of a long list that are printed; JSON holds all of them."""
WIDTH = 100
"""Columns of what is printed, at most; exactly so many where there is no terminal."""
VERIFIED = ("training.reward.success=1", "training.reward.judge=0")
"""What `--reward verified` is short for."""
Report = Callable[[int, int], None]


@dataclass(slots=True)
class Session:
    """What a command works with."""

    options: Options
    stdout: TextIO
    """Where the JSON document goes; tables go to `sys.stdout`, which is stderr while JSON was asked for."""
    run: Run | None = None
    """Once it was opened."""
    overrides: tuple[str, ...] = ()
    """What the command line overrides in the configuration, without what the environment adds."""
    common: tuple[str, ...] = ()
    """Those of them that the shared options ask for: without the command's own flags."""
    documented: bool = False
    """Whether the JSON document was printed."""

    @property
    def workspace(self) -> Workspace:
        """Where the command writes."""
        return Workspace(root_of(self.options))

    def open(self, flags: Mapping[str, Any] | None = None, reading: Mapping[str, str | None] | None = None) -> Run:
        """Open the run: configuration, `--set`, `--reward`, `--sources`, its own flags, then files that are only read.

        Args:
            flags: key of the configuration -> what the command's own flag gives it, or None.
            reading: key -> a file to read in the place of one that RC1 writes, or None; see `given`.
        """
        from rc1_lib.run import open_run

        options = self.options
        verified = VERIFIED if options.reward == "verified" else ()
        self.common = (*options.settings, *verified, *_overrides({"sources.use": source(options.sources)}))
        self.overrides = (*self.common, *_overrides(flags or {}))
        self.run = open_run(
            profile=options.profile,
            config=options.config,
            overrides=self.overrides,
            workspace=options.workspace,
            reading={key: path for key, path in (reading or {}).items() if path is not None},
        )
        return self.run

    def show(self, *what: RenderableType) -> None:
        """Print for people: nothing when JSON was asked for."""
        if not self.options.as_json:
            console = Console(file=sys.stdout, highlight=False)
            if not console.is_terminal or console.width > WIDTH:
                console.width = WIDTH
            for one in what:
                # Sentences and paths are not cut: a terminal wraps them, and a copied path stays whole.
                console.print(one, soft_wrap=isinstance(one, str), markup=False)

    def show_some(self, lines: Iterable[str]) -> None:
        """Print the first `SOME` lines; JSON holds all."""
        listed = list(lines)
        self.show(*listed[:SOME])
        if len(listed) > SOME:
            self.show(f"and {len(listed) - SOME} more; --json lists all")

    def document(self, value: Any) -> None:
        """Print the one JSON document when it was asked for. NaN becomes null."""
        if self.options.as_json:
            import orjson

            self.documented = True
            text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
            self.stdout.write(text.decode() + "\n")
            self.stdout.flush()

    def pack_failure(self) -> Path:
        """Write the failure package of the run, or of the workspace; a refused configuration is packed too."""
        from rc1_lib.failpack import write_failpack

        return write_failpack(self.run or self.workspace, [self.options.config] if self.options.config else [])

    @contextmanager
    def progress(self, title: str) -> Iterator[Report]:
        """Show a bar on stderr if it is a terminal; gives a function to call with (done, total)."""
        shown = terminal().isatty()
        with Progress(console=Console(file=terminal()), transient=True, disable=not shown) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def inside(self, flag: str, path: Path | None) -> str | None:
        """Return the path of a file to be written, relative to the workspace.

        Raises:
            ConfigError: when it would lie outside, for all that a run writes stays below its workspace; or is a folder.
        """
        if path is None:
            return None
        target = self._below(flag, path)
        if target.is_dir():
            raise ConfigError(f"{flag} {path}: is a folder, expected a file to write")
        return target.relative_to(self.workspace.root).as_posix()

    def report(self, flag: str, path: Path | None, keys: Collection[str]) -> str | None:
        """As `inside`, for a report that is written again each time: over an earlier one, and over nothing else.

        Such a report holds `keys`, or each of its lines does. Raises `ConfigError` as `inside` does, and when something
        else lies there.
        """
        target = self.inside(flag, path)
        if target is not None and (there := self.workspace.path(target)).exists() and not _holds(there, keys):
            raise ConfigError(
                f"{flag} {path}: is there already and no earlier report of this command, so it is not overwritten; "
                f"name another file, or move it away"
            )
        return target

    def new_folder(self, flag: str, path: Path | None, default: str) -> Path:
        """Return the full path of a folder to be written, `default` if none is named; raises as `inside` does."""
        return self.workspace.path(default) if path is None else self._below(flag, path)

    def _below(self, flag: str, path: Path) -> Path:
        root = self.workspace.root
        target = (root / path).resolve()
        if not target.is_relative_to(root) or target == root:
            raise ConfigError(
                f"{flag} {path}: lies outside the workspace {root}; name one below it, or set --workspace"
            )
        return target

    @overload
    def given(self, path: Path) -> str: ...

    @overload
    def given(self, path: Path | None) -> str | None: ...

    def given(self, path: Path | None) -> str | None:
        """Return the path of what is to be read: below the workspace if it is there, else below the current folder."""
        if path is None:
            return None
        own = (self.workspace.root / path).resolve()
        if not own.exists() and path.resolve().exists():
            own = path.resolve()
        return own.relative_to(self.workspace.root).as_posix() if own.is_relative_to(self.workspace.root) else str(own)


def root_of(options: Options) -> Path:
    """The workspace's folder; raises `RC1Error` when none is named, and the current folder of a package is none."""
    return options.workspace.resolve() if options.workspace else default_root()


def _holds(path: Path, keys: Collection[str]) -> bool:
    """Whether a file is a JSON object with these keys, or begins with a line that is one."""
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
    """`key=value` for every flag that was given (is not None), the values as JSON, which YAML reads too."""
    given = {key: value for key, value in flags.items() if value is not None}
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]


@contextmanager
def stages() -> Iterator[None]:
    """Show on stderr how far each stage is, while the block lasts."""
    if not terminal().isatty():
        with listening(_Lines().report):
            yield
        return
    # In a narrow terminal the note gives way: its length is not known before.
    note = TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True)), BarColumn(bar_width=_BAR_WIDTH),
        MofNCompleteColumn(), TimeElapsedColumn(), note,
    )  # fmt: skip
    ids: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int, note: str) -> None:
        if stage not in ids:
            ids[stage] = bars.add_task(stage, total=total, note=note)
        bars.update(ids[stage], completed=done, total=total, note=note)

    with Progress(*columns, console=Console(file=terminal()), expand=True) as bars, listening(report):
        yield


class _Lines:
    """A line for every note, and for the bare counts now and then; the end of a stage is reported once."""

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
            print(f"[{now - self.begun:6.1f} s] {stage}: {done}/{total} {note}".rstrip(), file=sys.stderr, flush=True)


def quieten_models(run: Run) -> None:
    """Silence the notices of the model libraries; progress bars stay where the base has to be downloaded."""
    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
