"""Every way in which a call fails, over loopback with the real SDKs: the right fault, and one request per call."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import Ask, AttemptOutcome, CallFailedError
from rc1_lib.judge.providers.exchange import _MOST
from tests.judge_server import Behaviour, FaultKind, running

Failed = Callable[[JudgeConfig, Ask], CallFailedError]
Make = Callable[..., Any]
WIRES = ("openai", "gemini")
FAULTS = {
    FaultKind.RATE_LIMIT: AttemptOutcome.RATE_LIMITED,
    FaultKind.RATE_LIMIT_RETRY_AFTER: AttemptOutcome.RATE_LIMITED,
    FaultKind.SERVER_ERROR: AttemptOutcome.SERVER_ERROR,
    FaultKind.RESET: AttemptOutcome.CONNECTION,
    FaultKind.HALF_BODY: AttemptOutcome.BAD_BODY,
    FaultKind.NOT_JSON: AttemptOutcome.BAD_BODY,
    FaultKind.EMPTY: AttemptOutcome.BAD_BODY,
    FaultKind.FILTERED: AttemptOutcome.REFUSED,
    FaultKind.SLOW_BODY: AttemptOutcome.TIMEOUT,
    FaultKind.HANG: AttemptOutcome.TIMEOUT,
}


def wires_and_faults() -> Iterator[Any]:
    # Both wires use the same timeout, so the slow cases of the second one are long tests.
    for name, kind in itertools.product(WIRES, FAULTS):
        repeats = FAULTS[kind] is AttemptOutcome.TIMEOUT and name != "openai"
        yield pytest.param(name, kind, marks=[pytest.mark.long] if repeats else [])


@pytest.mark.parametrize(("name", "kind"), wires_and_faults())
def test_each_fault_has_its_outcome_status_and_detail(
    name: str, kind: FaultKind, ask: Make, settings: Make, failed_call: Failed
) -> None:
    # Long enough for a busy machine to send the request and to read the head of the response.
    timeout_s = 2.0 if FAULTS[kind] is AttemptOutcome.TIMEOUT else 10.0
    with running(Behaviour(delay="zero", faults={kind: 1.0})) as server:

        def fail(_: int) -> CallFailedError:
            return failed_call(settings(name, server, timeout_s=timeout_s), ask())

        with ThreadPoolExecutor(2 if FAULTS[kind] is AttemptOutcome.TIMEOUT else 1) as threads:
            failures = list(threads.map(fail, range(2)))
        stats = server.stats()
    assert {failure.fault for failure in failures} == {FAULTS[kind]}
    assert stats.requests == 2
    assert stats.answered == 0
    assert all(0 < len(failure.detail) <= 300 for failure in failures)
    assert [failure.status for failure in failures] == {
        AttemptOutcome.RATE_LIMITED: [429, 429],
        AttemptOutcome.SERVER_ERROR: [500, 502],
        AttemptOutcome.CONNECTION: [None, None],
        AttemptOutcome.BAD_BODY: [200, 200],
        AttemptOutcome.REFUSED: [400, 400],
        AttemptOutcome.TIMEOUT: [200, 200] if kind is FaultKind.SLOW_BODY else [None, None],
    }[FAULTS[kind]]
    assert failures[0].retry_after == (1.0 if kind is FaultKind.RATE_LIMIT_RETRY_AFTER else None)


@pytest.mark.parametrize("name", WIRES)
def test_the_retry_after_of_a_503_is_read(
    name: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(503, {"error": {"message": "overloaded"}}, "Retry-After: 12")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status, failure.retry_after) == (AttemptOutcome.SERVER_ERROR, 503, 12.0)
    assert "overloaded" in failure.detail


def test_an_exhausted_account_is_rejected_instead_of_rate_limited(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(429, {"error": {"message": "Too much.", "code": "insufficient_quota"}}, "Retry-After: 3")
    failure = failed_call(settings("openai", base_url=script.url("openai")), ask())
    assert (failure.fault, failure.retry_after) == (AttemptOutcome.REJECTED, None)
    assert "SCORER_API_KEY" in failure.detail


@pytest.mark.parametrize(
    ("status", "fault", "named"),
    [
        (307, AttemptOutcome.REJECTED, "judge.base_url"),
        (400, AttemptOutcome.REJECTED, "docs/judge.md"),
        (401, AttemptOutcome.REJECTED, "SCORER_API_KEY"),
        (404, AttemptOutcome.REJECTED, "judge.model (judge-large)"),
        (408, AttemptOutcome.SERVER_ERROR, "said so"),
    ],
)
@pytest.mark.parametrize("name", WIRES)
def test_each_http_status_maps_to_its_fault(
    name: str, status: int, fault: AttemptOutcome, named: str, ask: Make, settings: Make, failed_call: Failed,
    script: Any,
) -> None:  # fmt: skip
    script.says(status, {"error": {"message": "It said so. " + "On and on. " * 99}}, f"Location: {script.url(name)}")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status) == (fault, status)
    assert named in failure.detail
    assert "said so" in failure.detail
    assert len(failure.detail) <= 300
    assert len(script.bodies) == 1


def test_geminis_invalid_key_error_names_the_key_variable_and_meets_every_call(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    script.says(400, {"error": {"code": 400, "message": "API key not valid.", "details": details}})
    failure = failed_call(settings("gemini", base_url=script.url("gemini")), ask())
    assert failure.fault is AttemptOutcome.REJECTED and failure.of_all
    assert "SCORER_API_KEY" in failure.detail


ODD_BODIES: tuple[Any, ...] = (
    b"",
    b"[]",
    b"\xff\xfe\x00",
    {"choices": None, "candidates": None},
    {"choices": [None], "candidates": [None]},
    {"choices": [{"message": "text"}], "candidates": [{"content": {"parts": ["text"]}}]},
    {"error": {"message": "text", "code": 200}},
)


@pytest.mark.parametrize("body", ODD_BODIES, ids=range(len(ODD_BODIES)))
@pytest.mark.parametrize("name", WIRES)
def test_a_200_without_a_reply_is_a_bad_body(
    name: str, body: Any, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(200, body)
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status) == (AttemptOutcome.BAD_BODY, 200)


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"[" * 100_000, b'{"error": 3}'])
@pytest.mark.parametrize("name", WIRES)
def test_the_status_decides_if_an_error_has_an_unreadable_body(
    name: str, body: Any, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(429, body, "Retry-After: 2")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status, failure.retry_after) == (AttemptOutcome.RATE_LIMITED, 429, 2.0)


@pytest.mark.parametrize("name", WIRES)
def test_a_body_that_is_too_large_is_not_kept(
    name: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    body = b" " * _MOST + b"{}"
    for status, fault in ((200, AttemptOutcome.BAD_BODY), (503, AttemptOutcome.SERVER_ERROR)):
        script.says(status, gzip.compress(body), "Content-Encoding: gzip")
        failure = failed_call(settings(name, base_url=script.url(name)), ask())
        assert (failure.fault, len(str(failure)) < 1000) == (fault, True)
        assert status != 200 or f"more than {_MOST:,} bytes" in str(failure)


@pytest.mark.parametrize("code", ["429", "overloaded"])
@pytest.mark.parametrize("name", WIRES)
def test_an_error_reported_under_200_is_classified_by_its_code(
    name: str, code: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(200, {"error": {"code": code, "message": "upstream is busy"}}, "Retry-After: 4")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status, failure.retry_after) == (AttemptOutcome.RATE_LIMITED, 429, 4.0)


@pytest.mark.parametrize("name", WIRES)
def test_an_unreachable_server_is_a_connection_fault(name: str, ask: Make, settings: Make, failed_call: Failed) -> None:
    failure = failed_call(settings(name, base_url="http://127.0.0.1:9"), ask())
    assert (failure.fault, failure.status, failure.sent) == (AttemptOutcome.CONNECTION, None, False)


def test_a_request_above_every_limit_is_rejected_with_the_providers_sentence(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    said = "Request too large for judge-large on tokens per min (TPM): Limit 900, Requested 1200."
    script.says(429, {"error": {"message": said, "type": "tokens", "code": "rate_limit_exceeded"}}, "Retry-After: 20")
    failure = failed_call(settings("openai", base_url=script.url("openai")), ask())
    assert (failure.fault, failure.retry_after, failure.of_all) == (AttemptOutcome.REJECTED, None, False)
    assert "Limit 900, Requested 1200" in failure.detail


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "no", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
        (400, {"message": "The prompt triggered Azure OpenAI's content management policy."}),
        (400, {"message": "Input data may contain inappropriate content.", "code": "data_inspection_failed"}),
        (403, {"message": "Your chosen model requires moderation and your input was flagged for violence."}),
    ],
)
def test_a_content_filter_error_is_a_refusal(
    status: int, error: Any, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(status, {"error": error})
    assert failed_call(settings("openai", base_url=script.url("openai")), ask()).fault is AttemptOutcome.REFUSED
