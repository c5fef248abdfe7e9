"""`dev reference`: the pages of docs/reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import INSTALLED, PROJECT_ROOT, write_text


def reference_of(app: typer.Typer) -> Callable[..., int]:
    """Return the command that compares the reference pages with `app`, or writes them."""

    def reference(
        session: Session,
        write: Annotated[bool, typer.Option("--write", help="Write the pages; otherwise only compare them.")] = False,
    ) -> int:
        """Compare docs/reference with the code, or write it: all configuration keys and all commands."""
        from rc1_lib.cli.reference import FOLDER, pages

        del session
        if INSTALLED:  # the pages would be written into the package, whose fingerprint tickets name
            raise RC1Error("docs/reference is not in an installed package; run `rc1 dev reference` in a checkout")
        differ = []
        for name, text in pages(app).items():
            page = PROJECT_ROOT / FOLDER / name
            if page.is_file() and page.read_text(encoding="utf-8") == text:
                continue
            differ.append(f"{FOLDER}/{name}")
            if write:
                write_text(page, text)
                print(f"written: {FOLDER}/{name}")
        if differ and not write:
            raise RC1Error(f"{' and '.join(differ)}: out of date; run `rc1 dev reference --write`")
        print(f"{FOLDER}: up to date")
        return 0

    return reference
