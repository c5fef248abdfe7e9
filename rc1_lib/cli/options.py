"""Options that several commands share, and the parsers of their values."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from rc1_lib.errors import ConfigError, SourceError
from rc1_lib.records import Task
from rc1_lib.task_specs import task_names
from rc1_lib.workspace.input_files import form_of, named_path

COMMON = "Common options"
"""The panel of the options that `command` adds to every command."""
Seed = Annotated[int | None, typer.Option(help="Seed of the pool (pool.seed).")]
Mix = Annotated[
    str | None,
    typer.Option(help='Share of each task, for example "hotpotqa:0.45,strategyqa:0.30,gsm8k:0.25" (datasets).'),
]
ByTask = Annotated[
    str | None,
    typer.Option("--by-task", help='Tasks that are also judged separately, "hotpotqa,gsm8k". Default: all of the mix.'),
]
TemplatesDir = Annotated[Path | None, typer.Option(help="Template pack (pool.templates_dir).")]
Metrics = Annotated[Path | None, typer.Option(help="The file of difficulty metrics (difficulty.metrics_path).")]
Rebuild = Annotated[
    bool,
    typer.Option(
        "--rebuild", "--force", help="Build again, even over a file that was altered or comes from elsewhere."
    ),
]
Provider = Annotated[str | None, typer.Option(help="The judge (judge.provider, SCORER_PROVIDER).")]
Model = Annotated[str | None, typer.Option(help="The judge's model, as its provider names it (judge.model).")]
Checkpoint = Annotated[str, typer.Argument(help="A checkpoint: latest, a step of checkpoints/rc1, or a path.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the log of the Prefect flow.")]
_common = partial(typer.Option, rich_help_panel=COMMON)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every command; `command` adds those that a command does not define itself."""

    workspace: Annotated[
        Path | None,
        _common(
            help="Folder below which everything is written. Default: the current folder, if it is a workspace: a "
            "checkout, prepared by `rc1 init`, or with data of RC1."
        ),
    ] = None
    config: Annotated[Path | None, _common(help="Configuration file. Default: the profile's.")] = None
    profile: Annotated[
        Literal["local", "prod"] | None, _common(help="local or prod. Default: RUN_MODE, else local.")
    ] = None
    overrides: Annotated[
        list[str] | None,
        _common(
            "--set",
            metavar="A.B=C",
            help="Override one key of the configuration; repeatable. A command's own flags win over it.",
        ),
    ] = None
    sources: Annotated[
        str | None,
        _common(
            help="Where questions come from: embedded, hub, a folder with one sub-folder per task, or a .jsonl file of "
            "finished rows (sources.use)."
        ),
    ] = None
    reward: Annotated[
        Literal["verified"] | None,
        _common(
            help="verified: reward only verified answers and call no judge (training.reward.judge=0, success=1); the "
            "gates on the judged score are then not applicable."
        ),
    ] = None
    as_json: Annotated[bool, _common("--json", help="Print one JSON document on stdout, and nothing else.")] = False

    @property
    def settings(self) -> tuple[str, ...]:
        """The values of `--set`, in the order given."""
        return tuple(self.overrides or ())


def shares(flag: str, text: str | None) -> dict[str, float] | None:
    """Parse `name:share,name:share`; the configuration checks names and shares afterwards.

    Raises:
        ConfigError: names the part of the text that is wrong.
    """
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, separator, number = (piece.strip() for piece in part.partition(":"))
        if not separator:
            raise ConfigError(f"{flag}: found '{part.strip()}', expected NAME:SHARE, separated by commas")
        if name in found:
            raise ConfigError(f"{flag}: '{name}' is given twice; name each once")
        try:
            found[name] = float(number)
        except ValueError:
            raise ConfigError(f"{flag}: the share of {name} is '{number}', expected a number from 0 to 1") from None
    if abs((total := sum(found.values())) - 1.0) > 1e-6:
        raise ConfigError(f"{flag}: the shares sum to {total:g}, expected 1")
    return found


def by_task(text: str | None, mix: Mapping[Task, float]) -> tuple[str, ...]:
    """Return the tasks to judge one by one: those named, or all of the mix if `text` is None.

    Raises:
        ConfigError: when a task is not in the mix, or none is named.
    """
    if text is None:
        return tuple(mix)
    found = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    for name in found or [text]:
        if name not in mix:
            near = difflib.get_close_matches(name, mix, n=1, cutoff=0.5)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ConfigError(f"--by-task: found '{name}', expected one of {', '.join(mix)}{hint}")
    return tuple(found)


def source(text: str | None) -> str | None:
    """Return `embedded` and `hub` unchanged, and a folder or a file of finished rows as an absolute path.

    Raises:
        SourceError: when there is no such source.
    """
    if text is None or text in ("embedded", "hub"):
        return text
    place = named_path(text, "--sources")
    if not place.is_dir() and not (form_of(place) == ".jsonl" and place.is_file()):
        raise SourceError(
            f"--sources {text}: found no such folder or .jsonl file; expected embedded, hub, a folder with "
            f"{', '.join(task_names())}, or a .jsonl file of finished rows"
        )
    return str(place)
