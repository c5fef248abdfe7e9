"""What is wrong with a checkpoint; read by what never loads one, and needs no tensor for it."""

from __future__ import annotations

from rc1_lib.errors import RC1Error


class CheckpointError(RC1Error):
    """A checkpoint that is missing, altered, or does not fit what it is loaded into."""
