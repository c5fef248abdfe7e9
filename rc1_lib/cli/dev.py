"""`dev reference`: the page of all configuration keys."""

from __future__ import annotations

from typing import Annotated

import typer

from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import INSTALLED, PROJECT_ROOT, write_text


def reference(
    session: Session,
    write: Annotated[bool, typer.Option("--write", help="Write the page; otherwise only compare it.")] = False,
) -> int:
    """Compare docs/reference/configuration.md, the page of all configuration keys, with the code, or write it."""
    from rc1_lib.cli.reference import PAGE, configuration_page

    del session
    if INSTALLED:  # the page would be written into the package, whose fingerprint tickets name
        raise RC1Error(f"{PAGE} is not in an installed package; run `rc1 dev reference` in a checkout")
    page, text = PROJECT_ROOT / PAGE, configuration_page()
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        if not write:
            raise RC1Error(f"{PAGE}: out of date; run `rc1 dev reference --write`")
        write_text(page, text)
    print(f"{PAGE}: {'written' if write else 'up to date'}")
    return 0
