"""What the log hears of scores that become rewards."""

from __future__ import annotations

import logging

from rc1_lib.scoring.judged import Judged
from rc1_lib.scoring.test_double import NOTICE

_LOG = logging.getLogger("rc1.reward")


class RewardLog:
    """Tells once that a judge is the test double, and each time why dialogues have no score."""

    def __init__(self, of: str) -> None:
        """`of` is what is scored, for people: `dialogues`, `episodes`."""
        self._of, self._double_noticed = of, False

    def tell(self, judged: Judged) -> None:
        """Warn of what was found; of reasons, the three that are named first."""
        if judged.test_double and not self._double_noticed:
            self._double_noticed = True
            _LOG.warning(NOTICE)
        for reason, count in judged.reasons[:3]:
            _LOG.warning("%d of %d %s are unscored: %s", count, len(judged.rows), self._of, reason)
