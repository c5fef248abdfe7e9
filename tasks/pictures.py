"""Pictures in the Prefect UI, embedded in artifacts, since the server cannot read the workspace."""

from __future__ import annotations

import base64

from rc1_lib.run import Run

_MAX_BYTES = 300_000
"""Prefect drops the event of an artifact above about 1.5 MB; a step has up to three pictures."""


def picture(run: Run, file: str, title: str) -> str:
    """A PNG of the workspace as Markdown; if it is too large, its path."""
    content = run.workspace.path(file).read_bytes()
    if len(content) > _MAX_BYTES:
        return f"`{file}` ({len(content):,} bytes, too large to be shown here)"
    return f"![{title}](data:image/png;base64,{base64.b64encode(content).decode()})\n\n`{file}`"
