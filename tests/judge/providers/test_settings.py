"""Invalid settings raise an error before any request, and the error does not repeat addresses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.judge.providers import LIVE, PROVIDERS, open_provider

Make = Callable[..., Any]


def test_every_provider_except_the_rubric_is_live() -> None:
    assert set(PROVIDERS) - LIVE == {"rubric"}


def test_an_unknown_provider_raises_an_error_that_proposes_a_name(settings: Make) -> None:
    with pytest.raises(ConfigError, match=rf"'gemni' \(judge\.provider .* {', '.join(PROVIDERS)}; .*'gemini'"):
        open_provider(settings("gemni"))


@pytest.mark.parametrize("name", sorted(LIVE))
def test_an_empty_model_raises_an_error(name: str, settings: Make) -> None:
    with pytest.raises(ConfigError, match=r"set judge\.model"):
        open_provider(settings(name, model=" "))


@pytest.mark.parametrize("model", ["../x", "m?key=sk-planted"])
def test_a_gemini_model_that_is_invalid_in_a_url_raises_an_error(model: str, settings: Make) -> None:
    with pytest.raises(ConfigError, match=r"judge\.model"):
        open_provider(settings("gemini", model=model))


@pytest.mark.parametrize("name", sorted(LIVE))
@pytest.mark.parametrize("key", [None, "  "])
def test_a_missing_api_key_raises_an_error(name: str, key: str | None, settings: Make) -> None:
    with pytest.raises(ConfigError, match="SCORER_API_KEY"):
        open_provider(settings(name, api_key=key))


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "[::1]:1", "10.0.0.4:8000", "gpu-box"])
def test_local_servers_need_no_api_key(host: str, settings: Make) -> None:
    for name in LIVE:
        open_provider(settings(name, base_url=f"http://{host}/v1", api_key=None))


@pytest.mark.parametrize("host", ["8.8.8.8", "localhost.example.com"])
def test_remote_servers_need_an_api_key(host: str, settings: Make) -> None:
    with pytest.raises(ConfigError, match="SCORER_API_KEY"):
        open_provider(settings("openai", base_url=f"https://{host}/v1", api_key=None))


@pytest.mark.parametrize(
    ("base_url", "why"),
    [
        ("https://user:sk-planted@api.example.com/v1", "contains credentials"),
        ("https://api.example.com/v1?key=sk-planted", r"\? or #"),
        ("https://user:sk-planted@api.example.com:port/v1", "cannot be read"),
        ("ftp://api.example.com/sk-planted", "http://"),
        ("http:///sk-planted", "names no server"),
        ("http://a..b/sk-planted", "names no server"),
    ],
)
def test_an_invalid_address_raises_an_error_without_the_address(base_url: str, why: str, settings: Make) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        open_provider(settings("gemini", base_url=base_url, api_key="sk-key"))
    assert "planted" not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_local_rubric_imports_no_sdk() -> None:
    code = (
        "import sys; import rc1_lib.judge.providers as p;"
        "from rc1_lib.run import published_config;"
        "p.open_provider(published_config().judge.model_copy(update={'provider': 'rubric'}));"
        "print(sorted({'openai', 'google.genai', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
