"""The judge's key from a Prefect secret, for workers without it in the environment."""

from __future__ import annotations

import os

from prefect.blocks.system import Secret
from prefect.exceptions import ObjectNotFound

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.judge.providers import LIVE
from rc1_lib.run import Run

SECRET = "rc1-scorer-api-key"
"""The secret's name."""


def provide_scorer_key(run: Run) -> None:
    """Put the secret into this process's environment if a live judge is configured and there is no key.

    RC1 masks keys of the environment in everything that it writes, and stores the key nowhere. Without a secret nothing
    happens; the code that needs the key reports it.
    """
    if run.config.judge.provider not in LIVE or os.environ.get(KEY_VARIABLE):
        return
    try:
        secret = Secret.load(SECRET)
    except (ValueError, ObjectNotFound):  # no such block
        return
    value = secret.get()  # type: ignore[union-attr]
    if isinstance(value, str) and value:
        os.environ[KEY_VARIABLE] = value
