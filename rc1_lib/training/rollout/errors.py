"""What can go wrong in a rollout that is the user's to mend."""

from __future__ import annotations

from rc1_lib.errors import RC1Error


class RolloutError(RC1Error):
    """A model, a prompt or a setting with which no episode can be played."""
