"""The API key is not in errors, their tracebacks or representations, whatever a server sends back."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import Ask, AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import Redactor, open_provider
from tests.judge_server import Behaviour, running

Failed = Callable[[JudgeConfig, Ask], CallFailedError]
Make = Callable[..., Any]
KEY = "sk-planted-0123456789-abcdefghij"


def _all_texts_of(error: BaseException) -> str:
    shown = [str(error), repr(error), *traceback.format_exception(error)]
    chained = [found for found in (error.__cause__, error.__context__) if found is not None]
    assert chained == []
    return "\n".join((*shown, *(str(value) for value in vars(error).values())))


@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_a_key_that_the_server_echoes_is_hidden(
    name: str, ask: Make, settings: Make, failed_call: Failed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with running(Behaviour(delay="zero", api_key="another")) as server:
        failure = failed_call(settings(name, server, api_key=KEY), ask())
    assert (failure.fault, failure.status) == (AttemptOutcome.REJECTED, 401)
    assert "SCORER_API_KEY" in failure.detail
    assert KEY not in _all_texts_of(failure)
    assert "planted" not in _all_texts_of(failure)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "quoted",
    [
        "sk-plan**********************ghij",
        "sk-pl...ghij",
        "sk-planted-012345",
        "Bearer " + KEY,
        "key%3D" + KEY.replace("-", "%2D"),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"user:{KEY}\n".encode()).decode(),
        base64.b64encode(KEY.encode()).decode()[8:30],
        KEY.encode().hex(),
    ],
)
def test_parts_of_a_key_are_hidden(quoted: str, ask: Make, settings: Make, failed_call: Failed, script: Any) -> None:
    script.says(401, {"error": {"message": f"Incorrect API key provided: {quoted}. Find yours elsewhere."}})
    shown = _all_texts_of(failed_call(settings("openai", base_url=script.url("openai"), api_key=KEY), ask()))
    assert "***" in shown
    assert "Find yours elsewhere" in shown
    for piece in ("sk-p", "plant", "ghij", "012345", "abcdef"):
        assert piece not in shown


@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_a_key_in_a_reply_is_hidden(
    name: str, ask: Make, settings: Make, call: Callable[..., Any], script: Any
) -> None:
    openai = {"id": KEY, "model": KEY, "choices": [{"message": {"content": KEY}}]}
    gemini = {"responseId": KEY, "modelVersion": KEY, "candidates": [{"content": {"parts": [{"text": KEY}]}}]}
    script.says(200, openai | gemini)
    assert KEY not in repr(call(settings(name, base_url=script.url(name), api_key=KEY), ask()))


def test_other_secrets_of_the_environment_are_hidden(
    ask: Make, settings: Make, failed_call: Failed, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_planted_elsewhere")
    script.says(500, "<html>hf_planted_elsewhere</html>")
    assert "hf_planted" not in _all_texts_of(failed_call(settings("openai", base_url=script.url("openai")), ask()))


def test_redaction_keeps_common_words_and_dots() -> None:
    text = "The model judge-large does not exist... or you have no access to it."
    assert Redactor(KEY).line(text) == text
    assert Redactor(None).line(text) == text


@pytest.mark.parametrize("key", ["sk-with\nnewline-inside", "sk-schlüssel-zum-glück"])
def test_a_key_that_is_invalid_in_a_header_raises_an_error_without_the_key(key: str, settings: Make) -> None:
    with pytest.raises(Exception, match="SCORER_API_KEY") as caught:
        open_provider(settings("openai", base_url="http://127.0.0.1/v1", api_key=key))
    assert key not in _all_texts_of(caught.value)
