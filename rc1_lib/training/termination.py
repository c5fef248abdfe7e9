"""SIGTERM in a training, as a scheduler sends it: the step ends and has a checkpoint before the signal takes effect."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

REASON = "stopped (SIGTERM)"


@contextmanager
def after_the_step(grace_s: float, stop: Callable[[str], None]) -> Iterator[None]:
    """Hold SIGTERM back in the block; `stop` then has to end the block, and at its end the signal takes effect.

    A second signal takes effect at once, as does the first one when the grace period is over.

    Args:
        grace_s: seconds that the block has left after the signal; 0: the signal is not held back.
        stop: called with the reason.
    """
    if grace_s == 0 or threading.current_thread() is not threading.main_thread():  # only that one may handle signals
        yield
        return
    process, came = os.getpid(), False
    over = threading.Timer(grace_s, os.kill, (process, signal.SIGTERM))
    over.daemon = True

    def hold(number: int, _: FrameType | None) -> None:
        nonlocal came
        if came or os.getpid() != process:  # a forked worker ends
            take_effect(number)
        came = True
        words = f"finishes this step and writes a checkpoint, for at most {grace_s:g} s; a second one ends it at once"
        os.write(2, f"\nrc1: SIGTERM: {words}\n".encode())
        over.start()
        stop(REASON)

    def take_effect(number: int) -> None:
        signal.signal(number, signal.SIG_DFL if before is None else before)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, hold)
    try:
        yield
        over.cancel()
        if came:
            take_effect(signal.SIGTERM)
    finally:
        over.cancel()
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
