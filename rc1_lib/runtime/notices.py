"""Silences the notices of libraries that a user can do nothing about."""

from __future__ import annotations

import logging
import os
import sys
import warnings


def quieten(*, hub: bool) -> None:
    """Silence the notices of libraries that a user can do nothing about.

    Args:
        hub: whether something may have to be downloaded, which takes so long that its bars are welcome.
    """
    if not hub:
        # Read once, when transformers is imported, which takes seconds and is left to whoever needs it.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        if "transformers" in sys.modules:
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # that a faster kernel is not installed
    # Libraries about each other: nothing that whoever runs RC1 could change.
    for name in ("transformers", "peft", "trl", "accelerate"):
        warnings.filterwarnings("ignore", category=FutureWarning, module=name)
