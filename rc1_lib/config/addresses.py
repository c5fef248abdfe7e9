"""Check the address of a server, and that it contains no key."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from rc1_lib.errors import ConfigError

KEY_VARIABLE = "SCORER_API_KEY"
VLLM_KEY = "RC1_VLLM_API_KEY"
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_\-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9]+)?")


_JUDGES = "The judge's address (judge.base_url or SCORER_BASE_URL)"


def read_address(base_url: str, whose: str = _JUDGES, key: str = KEY_VARIABLE) -> SplitResult:
    """Return the parts of a server's address. Errors never repeat it, since it may contain a key.

    Args:
        whose: its name in error messages.
        key: the environment variable with the server's key.

    Raises:
        ConfigError: when it cannot be used, or contains what belongs in the environment.
    """
    base_url = base_url.strip()
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts = None
    if parts is None:
        # Not inside `except`: the parser's error, which quotes the address, would be attached as context.
        raise _unusable(whose, "cannot be read as an address")
    if "@" in base_url:
        raise _unusable(whose, f"contains credentials; put them into {key}")
    if parts.query or parts.fragment or "?" in base_url or "#" in base_url:
        raise _unusable(whose, f"has ? or # after the path; remove it, and put a key into {key}")
    if parts.scheme not in {"http", "https"}:
        raise _unusable(whose, "does not start with http:// or https://")
    if not _HOST.fullmatch(host) or port == 0 or not base_url.isprintable() or " " in base_url:
        raise _unusable(whose, "names no server")
    return parts


def _unusable(whose: str, why: str) -> ConfigError:
    return ConfigError(f"{whose} {why}; expected an address such as http://127.0.0.1:8080/v1.")
