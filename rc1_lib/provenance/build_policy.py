"""Whether a data file has to be built: never over something that RC1 did not write itself."""

from __future__ import annotations

from typing import Literal

from rc1_lib.workspace.artifacts import FileState

Build = Literal["auto", "always", "never"]
NOT_OURS = {
    FileState.ALTERED: "was altered after RC1 wrote it",
    FileState.FOREIGN: "was not written by RC1 for this purpose",
}
"""The states of a file that somebody else had a hand in, in words: it is never written over unasked."""
_OURS_TO_BUILD = (FileState.MISSING, FileState.INTERRUPTED, FileState.STALE)


def needs_build(state: FileState, build: Build) -> bool:
    """Whether to build a file in this state.

    `auto` builds what is missing, interrupted or made from other inputs; a file that was altered by somebody else (or
    brought along) is left for the gates to judge. `always` builds everything; `never` judges what is there.
    """
    return build == "always" or (build == "auto" and state in _OURS_TO_BUILD)
