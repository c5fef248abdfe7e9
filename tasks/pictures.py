"""Pictures in the Prefect UI: they travel inside the artifact, since the server cannot read the workspace."""

from __future__ import annotations

import base64

from rc1_lib.run import Run

_MAX_BYTES = 300_000
"""Above about 1.5 MB in one artifact Prefect drops the artifact's event; a step has up to three pictures."""


def picture(run: Run, file: str, title: str) -> str:
    """A PNG of the workspace as markdown; where it is too large, the words where it lies."""
    content = run.workspace.path(file).read_bytes()
    if len(content) > _MAX_BYTES:
        return f"`{file}` ({len(content):,} bytes, too large to be shown here)"
    return f"![{title}](data:image/png;base64,{base64.b64encode(content).decode()})\n\n`{file}`"
