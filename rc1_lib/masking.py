"""Keep secrets out of logs, reports and packages.

A secret is recognised by its value, in any encoding, if an environment variable contains it; or by its position, in an
address or after a name that is typical of credentials.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "***"
_NAMES = re.compile(
    r"SECRET|PASSWORD|PASSWD|AUTH_STRING|(APIKEY|(^|_)(KEY|TOKEN)|(?<!ASK)PASS)(_?\d+)?$", re.IGNORECASE
)
_URLS = re.compile(r"_URL$", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=//)[^/?#\s\"'<>]+(?=@)")
_QUERY = re.compile(
    r"[?&;][\w.\-]*(?:key|token|secret|passw(?:or)?d|pass|pwd|auth|authorization|sig|signature|credentials?|code)="
    r"([^&#\s\"'<>]+)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:api|access|secret)[_\-]?key|secret|passw(?:or)?d|(?:auth|access|api)[_\-]?token|"
    r"authorization)[\"']?[ \t]*[:=][ \t]*[\"']?(?:(?:bearer|basic|token)[ \t]+)?[\"']?([^\s\"',;{}\[\]]+)",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(
    r"((?:--[\w\-]+=)?[\w.\-\s]*(?:key|token|secret|pass|passw(?:or)?d|pwd|auth|authorization|bearer|credentials?)\s*)=.*",
    re.IGNORECASE | re.DOTALL,
)
_URL_SAFE = str.maketrans("+/", "-_")
_SHORTEST = 6
"""Minimum length of masked values: hiding every `1` or `none` would hide the log, not a secret."""


def secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the texts to hide, longest first: each secret, its lines, and both as written in JSON.

    Args:
        environment: default: the process's environment. A variable is secret if its name, in any case, contains
            `SECRET`, `PASSWORD` or `AUTH_STRING`, or ends in `_KEY`, `APIKEY`, `_TOKEN` or `PASS`, numbered or not. If
            it ends in `_URL`, only the credentials in its addresses are: before an `@`, and in a query after a name
            such as `key`.
    """
    found: set[str] = set()
    for name, value in (os.environ if environment is None else environment).items():
        if _NAMES.search(name):
            found.update(piece.strip() for piece in (value, *value.splitlines()))
        elif _URLS.search(name):
            found.update(form for secret in _in_addresses(value) for form in (secret, unquote(secret)))
    found = {form for text in found if len(text) >= _SHORTEST for form in _forms(text)}
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST), key=lambda text: (-len(text), text)))


def _in_addresses(text: str) -> Iterator[str]:
    """Yield the credentials in the addresses in `text`: passwords, user names without a password, keys in queries."""
    for userinfo in _USERINFO.findall(text):
        user, colon, password = userinfo.partition(":")
        yield password if colon and password else user
    yield from _QUERY.findall(text)


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it is, as in JSON and addresses, and encoded, alone or with text before and after it."""
    yield secret
    yield from (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    yield quote(secret, safe="")
    yield from (digits := secret.encode("utf-8", "surrogateescape").hex(), digits.upper())
    yield from in_base64(secret)


def in_base64(secret: str) -> Iterator[str]:
    """Yield the parts of a secret's base64 forms that do not depend on the text before and after it."""
    content = secret.encode("utf-8", "surrogateescape")
    for before in range(3):
        whole = 8 * (before + len(content)) // 6
        text = base64.b64encode(bytes(before) + content).decode()[-(-8 * before // 6) : whole]
        yield text
        yield text.translate(_URL_SAFE)


def mask(text: str, hidden: Iterable[str]) -> str:
    """Return `text` with each of `hidden` replaced by `***`."""
    for secret in hidden:
        text = text.replace(secret, HIDDEN)
    return text


def conceal(text: str, hidden: Iterable[str]) -> str:
    """Mask `hidden`, and secrets recognised by position: in an address, or after a name such as `api_key`.

    This is for texts that people read. Stored and compared data use `mask`, which only changes known secrets.
    """
    text = _USERINFO.sub(HIDDEN, mask(text, hidden))
    for pattern in (_QUERY, _NAMED):
        text = pattern.sub(lambda found: found[0][: found.start(1) - found.start()] + HIDDEN, text)
    return text


def conceal_argument(argument: str, hidden: Iterable[str]) -> str:
    """Conceal one argument of a command: the whole value if its key is named like a credential."""
    named = _ARGUMENT.fullmatch(argument)
    return f"{named[1]}={HIDDEN}" if named else conceal(argument, hidden)


def holds_credentials(text: str) -> bool:
    """Return whether an address in `text` has a name or password before an `@`, or a key in its query."""
    return any(True for _ in _in_addresses(text))


def mask_tree(value: Any, hidden: Iterable[str]) -> Any:
    """Return a JSON-like value with every text in it masked, before a format can split or escape a secret."""
    hidden = tuple(hidden)
    return _over(value, lambda text: mask(text, hidden))


def conceal_tree(value: Any, hidden: Iterable[str]) -> Any:
    """Return the same as `mask_tree`, with `conceal`."""
    hidden = tuple(hidden)
    return _over(value, lambda text: conceal(text, hidden))


def _over(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _over(item, change) for key, item in value.items()}
    return [_over(item, change) for item in value] if isinstance(value, list | tuple) else value


def conceal_bytes(content: bytes, hidden: Iterable[str]) -> bytes:
    """Conceal secrets in a file's bytes; in binary data only known ones."""
    hidden = tuple(hidden)
    if b"\0" not in content:
        text = content.decode("utf-8", "surrogateescape")
        return conceal(text, hidden).encode("utf-8", "surrogateescape")
    for secret in hidden:
        content = content.replace(secret.encode("utf-8", "surrogateescape"), HIDDEN.encode())
    return content
