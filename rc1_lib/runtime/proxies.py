"""Proxies that the environment names: SOCKS ones need a package that need not be there."""

from __future__ import annotations

import os
from importlib.util import find_spec

from rc1_lib.errors import ConfigError

_NAMES = ("all_proxy", "http_proxy", "https_proxy")


def check_proxies() -> None:
    """Refuse what the clients of Prefect and of a judge would stumble over, wherever they want to go.

    Raises:
        ConfigError: naming the variable; its value may hold a password.
    """
    for name, value in os.environ.items():
        if name.lower() in _NAMES and value.strip().lower().startswith("socks") and find_spec("socksio") is None:
            raise ConfigError(
                f"{name}: names a SOCKS proxy, expected an HTTP one; unset it (nothing but a live judge and downloads "
                f"leaves this machine), or install httpx[socks]"
            )
