"""What the log hears of scores that become rewards: the test double once, reasons every time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rc1_lib.judge.calls import NOTICE
from rc1_lib.judge.results import RewardLog


def test_a_test_double_is_told_once_and_reasons_each_time(caplog: pytest.LogCaptureFixture) -> None:
    reasons = [(f"reason {number}", 9 - number) for number in range(4)]
    judged: Any = SimpleNamespace(test_double=True, reasons=reasons, rows=range(40))
    log = RewardLog("episodes")
    log.tell(judged)
    told = [f"{9 - number} of 40 episodes are unscored: reason {number}" for number in range(3)]
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("rc1.reward", words) for words in (NOTICE, *told)
    ]
    caplog.clear()
    log.tell(judged)
    assert caplog.messages == told
