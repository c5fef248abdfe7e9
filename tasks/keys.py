"""The judge's key, for workers whose environment does not hold it: a Prefect secret."""

from __future__ import annotations

import os

from prefect.blocks.system import Secret
from prefect.exceptions import ObjectNotFound

from rc1_lib.run import Run
from rc1_lib.scoring.providers import KEY_VARIABLE, LIVE

SECRET = "rc1-scorer-api-key"
"""The secret's name."""


def provide_scorer_key(run: Run) -> None:
    """Put the secret into this process's environment when a live judge is configured and no key is there.

    From the environment it is masked in everything that RC1 writes; nothing else keeps it. Without a secret nothing
    happens: whoever needs the key says so.
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
