"""Keeping secrets out of logs, reports and packages: the values of environment variables that hold credentials."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"
_NAMES = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SHORTEST = 6
"""Values below this length are left alone: hiding every `1` or `none` would hide the log, not a secret."""


def secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What has to be hidden, the longest first: each secret, its lines, and both as they stand inside JSON.

    Args:
        environment: default: the process's own. A variable counts when its name ends in `_KEY`, `_TOKEN`, `_SECRET`
            or `_PASSWORD`, in any case.
    """
    found: set[str] = set()
    for name, value in (os.environ if environment is None else environment).items():
        if _NAMES.search(name):
            found.update(piece.strip() for piece in (value, *value.splitlines()))
    found |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in tuple(found) for ascii_only in (True, False)}
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST), key=lambda text: (-len(text), text)))


def mask(text: str, hidden: Iterable[str]) -> str:
    """`text` with every one of `hidden` replaced by `***`."""
    for secret in hidden:
        text = text.replace(secret, HIDDEN)
    return text


def mask_bytes(content: bytes, hidden: Iterable[str]) -> bytes:
    """The same for a file's bytes, whatever they are."""
    for secret in hidden:
        content = content.replace(secret.encode(), HIDDEN.encode())
    return content
