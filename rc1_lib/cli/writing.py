"""Never over something that RC1 did not write: the question that every building command asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rc1_lib.errors import RowError

if TYPE_CHECKING:
    from rc1_lib.artifacts import FileState
    from rc1_lib.run import Run


def to_write(run: Run, relative: str, state: FileState, rebuild: bool) -> bool:
    """Whether the file has to be written: not when it is fresh.

    Raises:
        RowError: when somebody else altered it or brought it along and `rebuild` was not given.
    """
    from rc1_lib.build_policy import NOT_OURS

    if not rebuild and state in NOT_OURS:
        raise RowError(
            f"{run.workspace.path(relative)}: {NOT_OURS[state]}; it is not overwritten. "
            f"Move it away, or give --rebuild to write it again"
        )
    return rebuild or state.value != "fresh"
