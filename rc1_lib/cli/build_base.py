"""`build-base`: the embedded base model, from its recipe."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.quiet import quieten
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.cli.tables import figure
from rc1_lib.errors import ConfigError

_RECIPE, _FOLDER = "configs/base.yaml", "models/embedded"


def build_base(
    session: Session,
    recipe: Annotated[Path, typer.Option(help="How it is built.")] = Path(_RECIPE),
    out: Annotated[Path, typer.Option(help="Folder of the workspace that it is written to.")] = Path(_FOLDER),
    check: Annotated[
        bool,
        typer.Option("--check", help="Build into a temporary folder and compare with what is there, byte for byte."),
    ] = False,
) -> int:
    """Build the bundled tiny model again: corpus, tokenizer, training, accuracy by stage. It takes long.

    Its result is committed: on one kind of machine, with the same versions and threads, the same bytes come out.
    """
    from rc1_lib.training.embedded.recipe import read_recipe

    given = recipe if recipe.is_absolute() or recipe.exists() else session.workspace.find(str(recipe))
    plan = read_recipe(given)
    folder = (session.workspace.root / out).resolve()
    if not folder.is_relative_to(session.workspace.root) or folder == session.workspace.root or folder.is_file():
        raise ConfigError(f"--out {out}: expected a folder below the workspace {session.workspace.root}")
    quieten(hub=False)
    from rc1_lib.training.embedded.build import build_base as build
    from rc1_lib.training.embedded.recorded import RECORD

    if not check:
        session.started = True
        with stages():
            record = build(plan, folder)
        session.show(_skill_table(record["accuracy_by_stage"]), *_shown(record), f"base: {folder}")
        show_ending(session, Ending("done", f"base of {record['parameters']:,} parameters"))
        session.document({"exit_code": 0, "folder": str(out), "record": record})
        return 0
    from rc1_lib.workspace.artifacts import read_json

    place = session.workspace.find(str(out))
    if not (place / RECORD).is_file():
        raise ConfigError(f"{place / RECORD}: there is no base to compare with; build it with rc1 build-base")
    session.started = True
    with stages(), tempfile.TemporaryDirectory() as temporary:
        record = build(plan, Path(temporary) / "base")
    return _compared(session, place, read_json(place / RECORD), record)


def _compared(session: Session, place: Path, there: dict[str, Any], built: dict[str, Any]) -> int:
    """Compare the files that lie there, and their record, with what was built."""
    from rc1_lib.workspace.file_hashes import sha256_file

    lying = {name: sha256_file(place / name) if (place / name).is_file() else None for name in there["files"]}
    table = Table(title="files", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("file", "there", "built", ""):
        table.add_column(head, no_wrap=True)
    differ = []
    for name in sorted(lying.keys() | built["files"].keys()):
        old, new = lying.get(name), built["files"].get(name)
        if old != new or old != there["files"].get(name):
            differ.append(name)
        table.add_row(name, (old or "missing")[:16], (new or "missing")[:16], "DIFFERS" if name in differ else "equal")
    session.show(table, _skill_table(built["accuracy_by_stage"]), *_shown(built))
    if differ:
        versions = [
            f"{name} {there['versions'].get(name)} there, {new} here"
            for name, new in built["versions"].items()
            if there["versions"].get(name) != new
        ]
        why = f"; other versions: {', '.join(versions)}" if versions else "; the versions are the same"
        session.show(f"{place}: {', '.join(differ)} differ{'s' if len(differ) == 1 else ''} from what was built{why}")
    else:
        session.show(f"{place}: equal to what was built, byte for byte")
    words = f"{len(differ)} of {len(lying)} files differ" if differ else f"{len(lying)} files are equal, byte for byte"
    show_ending(session, Ending("fail" if differ else "pass", words))
    session.document({"exit_code": 2 if differ else 0, "equal": not differ, "differ": differ, "record": built})
    return 2 if differ else 0


def _skill_table(skill: dict[str, Any]) -> Table:
    table = Table(title="accuracy by stage, on rows not learned", title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("stage", "accuracy", "places"):
        table.add_column(head, justify="left" if head == "stage" else "right")
    for stage in (name for name in skill if not name.startswith("n ")):
        table.add_row(stage, figure(skill[stage]), f"{skill[f'n {stage}']:,.0f}")
    return table


def _shown(record: dict[str, Any]) -> list[str]:
    read = (
        f"{of['rows']:,} rows and {of['tokens_per_pass']:,} tokens ({name})" for name, of in record["learned"].items()
    )
    return [
        f"{record['parameters']:,} parameters; read {', '.join(read)}; {record['training_minutes']} minutes of training"
    ]
