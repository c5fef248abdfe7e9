"""`dev reference`: are the pages of `docs/reference` what the code says; and writing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import PROJECT_ROOT, write_text

FOLDER = "docs/reference"


def reference_of(app: typer.Typer) -> Callable[..., int]:
    """The command that compares the pages with `app`, or writes them."""

    def reference(
        session: Session,
        write: Annotated[
            bool, typer.Option("--write", help="Write the pages; without it they are only compared.")
        ] = False,
    ) -> int:
        """Compare docs/reference with the code, or write it: every configuration key and every command."""
        del session
        out_of_date = {name: text for name, text in pages(app).items() if _there(name) != text}
        if write:
            for name, text in out_of_date.items():
                write_text(PROJECT_ROOT / FOLDER / name, text)
                print(f"written: {FOLDER}/{name}")
        elif out_of_date:
            names = " and ".join(f"{FOLDER}/{name}" for name in out_of_date)
            raise RC1Error(f"{names}: found another text than the code gives; run `rc1 dev reference --write`")
        print(f"{FOLDER}: as the code says")
        return 0

    return reference


def pages(app: typer.Typer) -> dict[str, str]:
    """File name -> the page as the code gives it now."""
    from rc1_lib.cli.reference.commands import commands_page  # no other command needs what these import
    from rc1_lib.cli.reference.keys import configuration_page

    return {"configuration.md": configuration_page(), "commands.md": commands_page(app)}


def _there(name: str) -> str | None:
    path = PROJECT_ROOT / FOLDER / name
    return path.read_text(encoding="utf-8") if path.is_file() else None
