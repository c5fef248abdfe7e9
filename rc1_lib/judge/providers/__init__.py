"""The judge's providers: address, model, settings and key, checked before anything is sent, and redaction of the key.

An SDK is imported only when a provider that needs it is opened. No message here repeats an address, which may hold a
key. Text from a server is made safe for logs and exceptions: one line, bounded, without secrets.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit

from rc1_lib.config.addresses import KEY_VARIABLE, read_address
from rc1_lib.config.file import Layer, merged, read_yaml
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import ConfigError
from rc1_lib.judge.calls import Provider
from rc1_lib.masking import HIDDEN, in_base64, mask, secrets
from rc1_lib.run import Run
from rc1_lib.runtime.libraries import check_proxies

_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "deepseek_r1": "https://api.deepseek.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Default address of each live provider."""
PLACEHOLDER_KEY = "no-key"
"""Passed to clients, which need some key, for servers that require none. It is never sent."""
_KEY = re.compile(r"[!-~]+")
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan")
LONGEST = 300
_READ = 4000
"""Characters of a server's text that are read."""
_PIECE = 6
"""Any part of the key of this length or longer is hidden."""
_STARRED = re.compile(r"[\w.+/=\-]*[*•●]{3,}[\w.+/=\-]*")
_DOTTED = re.compile(r"([\w\-]*)(?:\.{3,}|…)([\w\-]*)")


def _openai(config: JudgeConfig) -> Provider:
    target = endpoint_of(config)
    from rc1_lib.judge.providers.openai_protocol import OpenAIProtocol

    return OpenAIProtocol(config, target)


def _deepseek_r1(config: JudgeConfig) -> Provider:
    target = endpoint_of(config)
    from rc1_lib.judge.providers.openai_protocol import OpenAIProtocol

    # It takes `json_object` and rejects `json_schema` (api-docs.deepseek.com/guides/json_mode; the error is "This
    # response_format type is unavailable now"). Its JSON mode sometimes gives a blank reply, which is asked for again.
    return OpenAIProtocol(config, target, schemas=False)


def _gemini(config: JudgeConfig) -> Provider:
    target = endpoint_of(config)
    from rc1_lib.judge.providers.gemini import Gemini

    return Gemini(config, target)


def _rubric(_: JudgeConfig) -> Provider:
    from rc1_lib.judge.rubric import LocalRubric

    return LocalRubric()


PROVIDERS: Mapping[str, Callable[[JudgeConfig], Provider]] = MappingProxyType(
    {"openai": _openai, "deepseek_r1": _deepseek_r1, "gemini": _gemini, "rubric": _rubric}
)
"""Maps each name of `judge.provider` to the function that opens the provider."""
LIVE = frozenset(_ADDRESSES)
"""The providers that bill."""


def open_provider(config: JudgeConfig) -> Provider:
    """Open the configured provider without sending anything; close it with `aclose`.

    Raises:
        ConfigError: if the provider does not exist, or cannot be reached with these settings.
    """
    check_provider(config.provider)
    if config.provider in LIVE:
        check_proxies()
    return PROVIDERS[config.provider](config)


def address_of(name: str, base_url: str | None) -> str:
    """Return a live provider's address."""
    return base_url or _ADDRESSES[name]


def model_asked(config: JudgeConfig) -> str:
    """Return the requested model; for the local rubric, its current version."""
    if config.provider == "rubric":
        from rc1_lib.judge.rubric import version

        return version()
    return config.model or ""


def endpoint(config: JudgeConfig) -> str:
    """Identify what the configuration asks: provider, address and model."""
    return f"{config.provider} {config.base_url or ''} {model_asked(config)}"


def whom(config: JudgeConfig) -> str:
    """Describe what the configuration asks, for people: `openai at api.openai.com, model gpt-5-mini`."""
    if config.provider not in LIVE:
        return f"{config.provider}, on this machine"
    host = urlsplit(address_of(config.provider, config.base_url)).netloc
    return f"{config.provider} at {host}, model {config.model}"


def request_settings(judge: JudgeConfig) -> dict[str, Any]:
    """Return the settings, other than the prompt, that a request depends on. Defaults are left out."""
    return {
        "sampling": judge.sampling.model_dump(mode="json"),
        "structured": judge.channel == "schema",
        **({"channel": judge.channel} if judge.channel == "tool" else {}),
        **({"names": dict(judge.names)} if judge.names else {}),
    }


def check_model(run: Run) -> None:
    """Reject a provider that was overridden while model and prices still belong to the configuration file's provider.

    Raises:
        ConfigError: if so; it says what to set.
    """
    judge = run.config.judge
    keys = {override.partition("=")[0].strip() for override in run.overrides}
    if judge.model is None or "judge.provider" not in keys or keys & {"judge", "judge.model"}:
        return
    written = merged([Layer(file, read_yaml(file)) for file in run.config_files])
    whose = written["judge"].get("provider", judge.provider)
    if whose != judge.provider:
        raise ConfigError(
            f"judge.provider is '{judge.provider}' (SCORER_PROVIDER or the command line), but judge.model is "
            f"'{judge.model}', which {run.config_path.name} sets for {whose}; name a model of {judge.provider} with "
            f"--set judge.model=NAME, and set judge.prices for it"
        )


def check_provider(name: str) -> None:
    """Check that a provider of this name exists; it need not be reachable.

    Raises:
        ConfigError: if there is none.
    """
    if name not in PROVIDERS:
        near = difflib.get_close_matches(name, PROVIDERS, n=1, cutoff=0.5)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        raise ConfigError(
            f"There is no judge '{name}' (judge.provider or SCORER_PROVIDER); expected {', '.join(PROVIDERS)}{hint}"
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's address and key.

    Attributes:
        host: its host, safe to show.
        key: the key to open a client with; may be the placeholder.
        secret: the real key; None without one.
    """

    base_url: str = field(repr=False)
    host: str
    model: str
    key: str = field(repr=False)
    secret: str | None = field(repr=False)


def endpoint_of(config: JudgeConfig) -> Endpoint:
    """Return the endpoint of this configuration, with the key from the environment.

    Raises:
        ConfigError: if the model or the key is missing, or the address cannot be used.
    """
    model = config.model or ""
    if not model.strip():
        raise ConfigError(f"judge.provider is '{config.provider}', but judge.model is empty; set judge.model.")
    base_url = address_of(config.provider, config.base_url).strip()
    parts = read_address(base_url)
    host = parts.hostname or ""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key and not _is_private(host):
        raise ConfigError(
            f"{KEY_VARIABLE} is not set, and the judge '{config.provider}' at {host} needs a key; set it in the "
            "environment. Only servers on this machine or a private network need none."
        )
    if key and not _KEY.fullmatch(key):
        raise ConfigError(
            f"The key in {KEY_VARIABLE} contains spaces or characters that a header cannot hold; expected printable "
            "ASCII without spaces. Copy it again from the provider."
        )
    return Endpoint(base_url, host, model, key or PLACEHOLDER_KEY, key or None)


def _is_private(host: str) -> bool:
    """Whether a host is local or on a private network, judging by its name without a DNS lookup."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)
    return address.is_private or address.is_loopback or address.is_link_local


class Redactor:
    """Hides the environment's secrets and one provider's key, even if a server quotes only part of it."""

    def __init__(self, key: str | None) -> None:
        self._key = key or ""
        self._quoted = (self._key, *in_base64(self._key))
        own = (*secrets({KEY_VARIABLE: self._key}), quote(self._key, safe="")) if len(self._key) >= _PIECE else ()
        self._hidden = (*sorted(own, key=len, reverse=True), *secrets())

    def plain(self, text: str) -> str:
        """Return `text` with complete secrets hidden and nothing else changed."""
        return mask(text, self._hidden)

    def line(self, text: str, room: int = LONGEST) -> str:
        """Return `text` as one line of at most `room` characters, with secrets and parts of the key hidden."""
        text = " ".join("".join(c if c.isprintable() else " " for c in text[:_READ]).split())
        text = _STARRED.sub(HIDDEN, self._without_pieces(mask(text, self._hidden)))
        text = _DOTTED.sub(self._elided, text)
        return text if len(text) <= room else text[: max(0, room - 1)] + "…"

    def _without_pieces(self, text: str) -> str:
        kept: list[str] = []
        at = 0
        while at < len(text):
            end = at
            while end < len(text) and any(text[at : end + 1] in form for form in self._quoted):
                end += 1
            if end - at >= _PIECE:
                kept.append(HIDDEN)
                at = end
            else:
                kept.append(text[at])
                at += 1
        return "".join(kept)

    def _elided(self, found: re.Match[str]) -> str:
        """Hide `sk-a...wxyz`; leave other dots alone."""
        before, after = found.groups()
        starts = len(before) >= 2 and self._key.startswith(before)
        ends = len(after) >= 2 and self._key.endswith(after)
        return HIDDEN if starts or ends else found.group()
