"""Keeping secrets out of logs, reports and packages: the values of environment variables that hold credentials."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
_NAMES = re.compile(r"SECRET|PASSWORD|PASSWD|(APIKEY|(^|_)(KEY|TOKEN)|(?<!ASK)PASS)(_?\d+)?$", re.IGNORECASE)
_URLS = re.compile(r"_URL$", re.IGNORECASE)
_USERINFO = re.compile(r"//[^/?#\s:]*:([^/?#\s]+)@")
_SHORTEST = 6
"""Values below this length are left alone: hiding every `1` or `none` would hide the log, not a secret."""


def secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What has to be hidden, the longest first: each secret, its lines, and both as they stand inside JSON.

    Args:
        environment: default: the process's own. A variable counts when its name, in any case, holds `SECRET` or
            `PASSWORD`, or ends like `_KEY`, `APIKEY`, `_TOKEN` or `PASS`, numbered or not; of one that ends in `_URL`
            the passwords of its addresses count.
    """
    found: set[str] = set()
    for name, value in (os.environ if environment is None else environment).items():
        if _NAMES.search(name):
            found.update(piece.strip() for piece in (value, *value.splitlines()))
        elif _URLS.search(name):
            found.update(form for password in _USERINFO.findall(value) for form in (password, unquote(password)))
    found |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in tuple(found) for ascii_only in (True, False)}
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST), key=lambda text: (-len(text), text)))


def mask(text: str, hidden: Iterable[str]) -> str:
    """`text` with every one of `hidden` replaced by `***`."""
    for secret in hidden:
        text = text.replace(secret, HIDDEN)
    return text


def mask_tree(value: Any, hidden: Iterable[str]) -> Any:
    """A JSON-like value with every text in it masked, before a format can break or quote a secret."""
    hidden = tuple(hidden)
    if isinstance(value, str):
        return mask(value, hidden)
    if isinstance(value, Mapping):
        return {key: mask_tree(item, hidden) for key, item in value.items()}
    return [mask_tree(item, hidden) for item in value] if isinstance(value, list | tuple) else value


def mask_bytes(content: bytes, hidden: Iterable[str]) -> bytes:
    """The same for a file's bytes, whatever they are."""
    for secret in hidden:
        content = content.replace(secret.encode(), HIDDEN.encode())
    return content
