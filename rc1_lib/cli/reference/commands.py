"""`docs/reference/commands.md`: every command, from the program's own parser."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

from rc1_lib.cli.command import CODES
from rc1_lib.cli.options import COMMON
from rc1_lib.cli.reference.values import accepted, shown

HEAD = """# Commands

Written by `rc1 dev reference --write` from the program's own parser; a test compares.

Dashes and underscores are the same in the names of commands and options. Every command takes `-h`.
"""


def commands_page(app: typer.Typer) -> str:
    """The whole page.

    Args:
        app: the program.
    """
    root = typer.main.get_command(app)
    pieces = [HEAD, f"{root.epilog} A command that has others says so.\n"]
    common: dict[str, Any] = {}
    for path, command in _walk(root, ("rc1",)):
        pieces.append(_command(path, command))
        common |= {option.opts[0]: option for option in command.params if _is_common(option)}
    pieces.append(_table("## Common options", list(common.values())))
    return "\n".join(pieces)


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below a group, and the group itself, in the program's order."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _walk(inner, (*path, name))


def _command(path: tuple[str, ...], command: Any) -> str:
    """Heading, usage, help and a table of a command's own arguments and options."""
    shown_params = [param for param in command.params if not getattr(param, "hidden", False)]
    own = [param for param in shown_params if not _is_common(param)]
    common = [f"`{param.opts[0]}`" for param in shown_params if _is_common(param)]
    words = [_argument(param) for param in own if param.param_type_name == "argument"]
    if hasattr(command, "commands"):
        words.append("COMMAND")
    lines = [f"## {' '.join(path)}", "", f"`{' '.join([*path, '[OPTIONS]', *words])}`", "", _wrapped(command.help), ""]
    lines += _epilog(command) if len(path) > 1 else []
    text = "\n".join(line.rstrip() for line in lines)
    if own:
        text += "\n" + _table("", own)
    if common:
        text += f"\nCommon options: {', '.join(common)}.\n"
    return text


def _wrapped(text: str) -> str:
    return "\n\n".join(textwrap.fill(part, 118, break_on_hyphens=False) for part in text.strip().split("\n\n"))


def _epilog(command: Any) -> list[str]:
    """The example, and exit codes that are not every command's."""
    example, _, codes = (command.epilog or "").partition("\n\n")
    start = "Example: "
    shown = f"{start}`{example.removeprefix(start)}`" if example else ""
    return [" ".join(filter(None, [shown, "" if codes == CODES else codes])), ""] if example else []


def _table(heading: str, params: list[Any]) -> str:
    lines = [heading, ""] if heading else []
    lines += ["| option | takes | default | what |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(_row, params), ""])


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        name = f"`{_argument(param)}`"
    else:
        name = ", ".join(f"`{opt}`" for opt in (*param.opts, *param.secondary_opts))
    cells = (name, _takes(param), _default(param), " ".join((param.help or "").split()))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required else f"[{name}]"


def _takes(param: Any) -> str:
    if getattr(param, "is_flag", False):
        return ""
    if param.metavar and param.param_type_name == "option":
        kind = f"`{param.metavar}`"
    else:
        kind = _kind(param.type_descriptor.annotation, param)
    return f"{kind}, repeatable" if param.multiple else kind


def _kind(annotation: Any, param: Any) -> str:
    if get_origin(annotation) is list:
        (annotation,) = get_args(annotation)
    named = "path" if annotation is Path else None
    bounds = [f"{sign} {shown(bound)}" for sign, bound in (("≥", param.min), ("≤", param.max)) if bound is not None]
    return " ".join([named or accepted(annotation), ", ".join(bounds)]).strip()


def _default(param: Any) -> str:
    if param.required:
        return "required"
    unset = param.default is None or param.default is False
    return "" if unset else f"`{shown(param.default)}`"


def _is_common(param: Any) -> bool:
    return getattr(param, "rich_help_panel", None) == COMMON
