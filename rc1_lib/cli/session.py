"""What a command works with: it opens the run, prints tables or JSON, and shows progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, overload

from rich.console import Console, RenderableType

from rc1_lib.cli.options import Options, source
from rc1_lib.cli.streams import terminal
from rc1_lib.errors import ConfigError
from rc1_lib.workspace.artifacts import Workspace, default_root

if TYPE_CHECKING:
    from rc1_lib.run import Run

WIDTH = 100
"""Columns of what is printed, at most; exactly so many where there is no terminal."""
VERIFIED = ("training.reward.success=1", "training.reward.judge=0")
"""What `--reward verified` is short for."""
Report = Callable[[int, int], None]


@dataclass(slots=True)
class Session:
    """What a command works with.

    Attributes:
        options: the shared options.
        stdout: where the JSON document goes; tables go to `sys.stdout`, which is stderr while JSON was asked for.
        run: the run once it was opened.
        overrides: what the command line overrides in the configuration, without what the environment adds.
        common: those of them that the shared options ask for: without the command's own flags.
        started: whether a preflight has begun; even a refusal from then on is worth a package.
        documented: whether the JSON document was printed.
    """

    options: Options
    stdout: TextIO
    run: Run | None = None
    overrides: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    started: bool = False
    documented: bool = False

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

    def document(self, value: Any) -> None:
        """Print the one JSON document when it was asked for. NaN becomes null."""
        if self.options.as_json:
            import orjson

            self.documented = True
            text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
            self.stdout.write(text.decode() + "\n")
            self.stdout.flush()

    def pack_failure(self) -> Path:
        """Write the failure package of what was worked on: the run, or only the workspace where none could be opened.

        A refused configuration is packed too.
        """
        from rc1_lib.failpack import write_failpack

        return write_failpack(self.run or self.workspace, [self.options.config] if self.options.config else [])

    @contextmanager
    def progress(self, title: str) -> Iterator[Report]:
        """Show a bar on stderr if it is a terminal; gives a function to call with (done, total)."""
        from rich.progress import Progress

        shown = terminal().isatty()
        with Progress(console=Console(file=terminal()), transient=True, disable=not shown) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def inside(self, flag: str, path: Path | None) -> str | None:
        """Return the path of a file to be written, relative to the workspace.

        Raises:
            ConfigError: when it would lie outside: everything that a run writes stays below its workspace.
        """
        if path is None:
            return None
        target = self._below(flag, path)
        if target.is_dir():
            raise ConfigError(f"{flag} {path}: is a folder, expected a file to write")
        return target.relative_to(self.workspace.root).as_posix()

    def report(self, flag: str, path: Path | None, keys: Collection[str]) -> str | None:
        """As `inside`, for a report that is written again each time: over an earlier one, and over nothing else.

        Args:
            flag: that names it.
            path: the file.
            keys: what such a report holds, or each of its lines.

        Raises:
            ConfigError: as `inside` does, and when something else lies there.
        """
        target = self.inside(flag, path)
        if target is not None and (there := self.workspace.path(target)).exists() and not _holds(there, keys):
            raise ConfigError(
                f"{flag} {path}: is there already and no earlier report of this command, so it is not overwritten; "
                f"name another file, or move it away"
            )
        return target

    def new_folder(self, flag: str, path: Path | None, default: str) -> Path:
        """Return the full path of a folder to be written; `default` if none is named.

        Raises:
            ConfigError: as `inside` does when it would lie outside the workspace.
        """
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
    """The workspace's folder.

    Raises:
        RC1Error: when none is named, RC1 is installed as a package, and the current folder is none.
    """
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
