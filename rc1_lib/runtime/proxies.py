"""Checks proxies in the environment: SOCKS proxies need an optional package."""

from __future__ import annotations

import os
from importlib.util import find_spec

from rc1_lib.errors import ConfigError

_NAMES = ("all_proxy", "http_proxy", "https_proxy")


def check_proxies() -> None:
    """Reject proxies on which the clients of Prefect and of a judge would fail.

    Raises:
        ConfigError: names the variable but not its value, which may contain a password.
    """
    for name, value in os.environ.items():
        if name.lower() in _NAMES and value.strip().lower().startswith("socks") and find_spec("socksio") is None:
            raise ConfigError(
                f"{name}: names a SOCKS proxy, expected an HTTP one; unset it (only a live judge and downloads need "
                f"the network), or install httpx[socks]"
            )
