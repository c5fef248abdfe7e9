"""How a provider is reached, checked before anything is sent. No message here repeats an address: it may hold a key."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rc1_lib.config.addresses import KEY_VARIABLE, read_address
from rc1_lib.config.judge import Channel, Renamed
from rc1_lib.errors import ConfigError

PLACEHOLDER_KEY = "no-key"
"""Given to the clients, which cannot be opened without a key, for servers that ask for none. It is never sent."""
_KEY = re.compile(r"[!-~]+")
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What a provider is opened with.

    Attributes:
        name: one of `PROVIDERS`.
        model: the model to ask for.
        base_url: of another server that speaks the same protocol; None for the provider's own.
        api_key: the key; None for servers that ask for none. Never shown.
        timeout_s: seconds after which an attempt is given up, however much of the reply has come.
        channel: how the grades are asked for.
        names: parameters that the server knows by another name -> that name.
    """

    name: str
    model: str
    base_url: str | None = field(repr=False)
    api_key: str | None = field(repr=False)
    timeout_s: float
    channel: Channel
    names: Mapping[Renamed, str]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to send, and with which key.

    Attributes:
        base_url: the address.
        host: its host, fit to be shown.
        key: the key to open a client with, possibly the placeholder.
        secret: the key when it is one.
    """

    base_url: str = field(repr=False)
    host: str
    key: str = field(repr=False)
    secret: str | None = field(repr=False)


def endpoint(settings: ProviderSettings, default_url: str) -> Endpoint:
    """Where these settings lead.

    Raises:
        ConfigError: when the model or the key is missing, or the address cannot be used.
    """
    if not settings.model.strip():
        raise ConfigError(f"judge.provider is '{settings.name}', but judge.model names no model; set judge.model.")
    base_url = (settings.base_url or default_url).strip()
    parts = read_address(base_url)
    host = parts.hostname or ""
    key = (settings.api_key or "").strip()
    if not key and not _is_private(host):
        raise ConfigError(
            f"{KEY_VARIABLE} is not set, and the judge '{settings.name}' at {host} needs a key; set it in the "
            "environment. Only servers on this machine or a private network are asked without one."
        )
    if key and not _KEY.fullmatch(key):
        raise ConfigError(
            f"The key in {KEY_VARIABLE} holds blanks or characters that cannot be sent in a header; expected printable "
            "ASCII without spaces. Copy it again from the provider."
        )
    return Endpoint(base_url, host, key or PLACEHOLDER_KEY, key or None)


def _is_private(host: str) -> bool:
    """Whether a host is this machine's or of a private network, judged by its name, without asking a name server."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)
    return address.is_private or address.is_loopback or address.is_link_local
