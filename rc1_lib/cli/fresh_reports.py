"""Which reports a flow has written: one of an earlier run is never shown as if it were of this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rc1_lib.run import Run


def stamps(run: Run, *patterns: str) -> dict[str, int]:
    """When each report that a pattern names (relative to the workspace) was written; in the order of the patterns."""
    root = run.workspace.root
    return {
        path.relative_to(root).as_posix(): path.stat().st_mtime_ns
        for pattern in patterns
        for path in sorted(root.glob(pattern))
    }


def written_since(run: Run, before: Mapping[str, int], *patterns: str) -> dict[str, Any]:
    """The reports, parsed, that are newer than the stamps taken `before`, by their paths."""
    from rc1_lib.workspace.artifacts import read_json

    return {
        relative: read_json(run.workspace.path(relative))
        for relative, stamp in stamps(run, *patterns).items()
        if before.get(relative) != stamp
    }
