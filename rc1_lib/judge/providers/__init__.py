"""Who can be asked for scores, behind one interface. The SDKs are imported when a provider of theirs is opened."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.errors import ConfigError
from rc1_lib.judge.calls import Provider
from rc1_lib.judge.providers.settings import ProviderSettings, endpoint
from rc1_lib.runtime.libraries import check_proxies

__all__ = ["KEY_VARIABLE", "LIVE", "PROVIDERS", "ProviderSettings", "open_provider"]

_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "deepseek_r1": "https://api.deepseek.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Where each live provider is, unless the configuration names another server."""


def _openai(settings: ProviderSettings) -> Provider:
    reached = endpoint(settings, _ADDRESSES["openai"])
    from rc1_lib.judge.providers.openai_protocol import OpenAIProtocol

    return OpenAIProtocol(settings, reached)


def _deepseek_r1(settings: ProviderSettings) -> Provider:
    reached = endpoint(settings, _ADDRESSES["deepseek_r1"])
    from rc1_lib.judge.providers.openai_protocol import OpenAIProtocol

    # It takes `json_object` and rejects `json_schema` (api-docs.deepseek.com/guides/json_mode; the error is "This
    # response_format type is unavailable now"). Its JSON mode sometimes gives a blank reply, which is asked for again.
    return OpenAIProtocol(settings, reached, schemas=False)


def _gemini(settings: ProviderSettings) -> Provider:
    reached = endpoint(settings, _ADDRESSES["gemini"])
    from rc1_lib.judge.providers.gemini import Gemini

    return Gemini(settings, reached)


def _rubric(settings: ProviderSettings) -> Provider:
    from rc1_lib.judge.providers.local_rubric import LocalRubric

    return LocalRubric()


PROVIDERS: Mapping[str, Callable[[ProviderSettings], Provider]] = MappingProxyType(
    {"openai": _openai, "deepseek_r1": _deepseek_r1, "gemini": _gemini, "rubric": _rubric}
)
"""How each provider is opened, by its name in `judge.provider`."""
LIVE = frozenset(_ADDRESSES)
"""The providers that bill."""


def open_provider(settings: ProviderSettings) -> Provider:
    """The provider that `settings` name. Nothing is sent yet; close it with `aclose`.

    Raises:
        ConfigError: when there is no such provider, or it cannot be reached with these settings.
    """
    check_provider(settings.name)
    if settings.name in LIVE:
        check_proxies()
    return PROVIDERS[settings.name](settings)


def address_of(name: str, base_url: str | None) -> str:
    """Where a live provider is asked."""
    return base_url or _ADDRESSES[name]


def check_provider(name: str) -> None:
    """Whether there is a provider of this name; whether it can be reached is another question.

    Raises:
        ConfigError: when there is none.
    """
    if name not in PROVIDERS:
        near = difflib.get_close_matches(name, PROVIDERS, n=1, cutoff=0.5)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        raise ConfigError(
            f"There is no judge '{name}' (judge.provider or SCORER_PROVIDER); known are {', '.join(PROVIDERS)}{hint}"
        )
