"""Names of flow runs in the Prefect UI: all flows are called `rc1`, so a run says what it does, and its profile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from prefect.runtime import flow_run


def named(kind: str) -> Callable[[], str]:
    """Return a function that names the current run: `nightly, prod, 28 Nov 03:00`."""

    def name() -> str:
        given = flow_run.parameters
        what = "nightly" if given.get("recheck") else kind
        profile = (str(given["profile"]),) if given.get("profile") else ()
        return ", ".join((what, *profile, f"{datetime.now(UTC):%d %b %H:%M}"))

    return name
