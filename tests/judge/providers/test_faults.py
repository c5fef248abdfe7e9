"""Every way in which a call fails, over loopback with the real SDKs: the right fault, and one request per call."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import LIVE, open_provider
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
REPLIED = (FaultKind.BAD_JSON_REPLY, FaultKind.WRONG_SCHEMA, FaultKind.REFUSAL, FaultKind.TRUNCATED)


def test_every_kind_of_fault_has_a_case() -> None:
    assert set(FAULTS) | set(REPLIED) == set(FaultKind)


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


@pytest.mark.parametrize("name", sorted(LIVE))
def test_outcomes_of_a_mixed_run_equal_the_servers_counts(name: str, ask: Make, settings: Make) -> None:
    rates = dict.fromkeys((*(kind for kind in FAULTS if FAULTS[kind] is not AttemptOutcome.TIMEOUT), *REPLIED), 0.06)

    async def several() -> Counter[str]:
        provider = open_provider(settings(name, server))
        calls = (provider.ask(ask(f"attempt-{number}", f"key-{number}")) for number in range(60))
        results = await asyncio.gather(*calls, return_exceptions=True)
        await provider.aclose()
        seen: Counter[str] = Counter()
        for result in results:
            if isinstance(result, Answer):
                seen["answered"] += 1
            else:
                assert isinstance(result, CallFailedError)
                seen[result.fault] += 1
        return seen

    with running(Behaviour(seed=3, delay="zero", faults=rates)) as server:
        seen = asyncio.run(several())
        stats = server.stats()
    assert stats.requests == 60
    assert sorted(stats.attempt_ids) == sorted(f"attempt-{number}" for number in range(60))
    assert seen.pop("answered") == stats.answered
    expected: Counter[str] = Counter()
    for kind, fault in FAULTS.items():
        expected[fault] += stats.by_kind.get(kind.value, 0)
    assert seen == +expected
    assert len(+expected) == 5


@pytest.mark.parametrize("wait", [0.25, 7, "17"])
@pytest.mark.parametrize("name", WIRES)
def test_the_retry_after_of_a_429_is_read(
    name: str, wait: float | str, ask: Make, settings: Make, failed_call: Failed
) -> None:
    with running(Behaviour(delay="zero", retry_after=wait, faults={FaultKind.RATE_LIMIT: 1.0})) as server:
        failure = failed_call(settings(name, server), ask())
    assert failure.retry_after == float(wait)


@pytest.mark.parametrize("name", WIRES)
def test_the_retry_after_of_a_503_is_read(
    name: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(503, {"error": {"message": "overloaded"}}, "Retry-After: 12")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status, failure.retry_after) == (AttemptOutcome.SERVER_ERROR, 503, 12.0)
    assert "overloaded" in failure.detail


def test_the_retry_delay_in_geminis_body_is_read(ask: Make, settings: Make, failed_call: Failed, script: Any) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
    script.says(429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [info]}})
    failure = failed_call(settings("gemini", base_url=script.url("gemini")), ask())
    assert (failure.fault, failure.retry_after) == (AttemptOutcome.RATE_LIMITED, 17.5)


@pytest.mark.parametrize("error", [{"code": "insufficient_quota"}, {"type": "insufficient_quota", "code": None}])
def test_an_exhausted_account_is_rejected_instead_of_rate_limited(
    error: dict[str, Any], ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(429, {"error": {"message": "You exceeded your current quota.", **error}}, "Retry-After: 3")
    failure = failed_call(settings("openai", base_url=script.url("openai")), ask())
    assert (failure.fault, failure.retry_after) == (AttemptOutcome.REJECTED, None)
    assert "SCORER_API_KEY" in failure.detail


def test_an_exhausted_daily_quota_is_rejected_instead_of_rate_limited(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    spent = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
    script.says(429, {"error": {"code": 429, "message": "quota", "details": [spent, {"retryDelay": "9s"}]}})
    assert failed_call(settings("gemini", base_url=script.url("gemini")), ask()).fault is AttemptOutcome.REJECTED


@pytest.mark.parametrize(
    ("status", "fault", "named"),
    [
        (307, AttemptOutcome.REJECTED, "judge.base_url"),
        (400, AttemptOutcome.REJECTED, "docs/judge.md"),
        (401, AttemptOutcome.REJECTED, "SCORER_API_KEY"),
        (402, AttemptOutcome.REJECTED, "balance"),
        (403, AttemptOutcome.REJECTED, "SCORER_API_KEY"),
        (404, AttemptOutcome.REJECTED, "judge.model (judge-large)"),
        (408, AttemptOutcome.SERVER_ERROR, "said so"),
        (409, AttemptOutcome.SERVER_ERROR, "said so"),
        (422, AttemptOutcome.REJECTED, "docs/judge.md"),
        (529, AttemptOutcome.SERVER_ERROR, "said so"),
    ],
)
@pytest.mark.parametrize("name", WIRES)
def test_each_http_status_maps_to_its_fault(
    name: str,
    status: int,
    fault: AttemptOutcome,
    named: str,
    ask: Make,
    settings: Make,
    failed_call: Failed,
    script: Any,
) -> None:
    script.says(status, {"error": {"message": "It said so. " + "On and on. " * 99}}, f"Location: {script.url(name)}")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status) == (fault, status)
    assert named in failure.detail
    assert "said so" in failure.detail
    assert len(failure.detail) <= 300
    assert len(script.bodies) == 1


def test_geminis_invalid_key_error_names_the_key_variable(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    script.says(400, {"error": {"code": 400, "message": "API key not valid.", "details": details}})
    failure = failed_call(settings("gemini", base_url=script.url("gemini")), ask())
    assert failure.fault is AttemptOutcome.REJECTED
    assert "SCORER_API_KEY" in failure.detail


ODD_BODIES: tuple[Any, ...] = (
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    {"choices": None, "candidates": None},
    {"choices": {}, "candidates": {}},
    {"choices": [None], "candidates": [None]},
    {"choices": [{}], "candidates": [{"content": []}]},
    {"choices": [{"message": "text"}], "candidates": [{"content": {"parts": ["text"]}}]},
    {"choices": [{"message": {"content": ["text"]}}], "candidates": [{"content": {"parts": {}}}]},
    {"error": "text"},
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


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"[" * 100_000, b"", b"[1]", b'{"error": 3}', {"error": {}}])
@pytest.mark.parametrize("name", WIRES)
def test_the_status_decides_if_an_error_has_an_unreadable_body(
    name: str, body: Any, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(429, body, "Retry-After: 2")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status, failure.retry_after) == (AttemptOutcome.RATE_LIMITED, 429, 2.0)


@pytest.mark.parametrize("name", WIRES)
def test_an_error_with_a_truncated_body_keeps_its_status(
    name: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(503, {"error": {"message": "overloaded"}})
    script.response = script.response[:-9]
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status) == (AttemptOutcome.SERVER_ERROR, 503)


@pytest.mark.parametrize("name", WIRES)
def test_a_damaged_gzip_body_is_a_bad_body(
    name: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(200, gzip.compress(b'{"choices": []}')[:-12] + b"\x00" * 12, "Content-Encoding: gzip")
    assert failed_call(settings(name, base_url=script.url(name)), ask()).fault is AttemptOutcome.BAD_BODY


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", WIRES)
def test_a_body_that_is_too_large_is_not_kept(
    name: str, packed: bool, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    body = b" " * _MOST + b"{}"
    for status, fault in ((200, AttemptOutcome.BAD_BODY), (503, AttemptOutcome.SERVER_ERROR)):
        script.says(status, gzip.compress(body) if packed else body, *["Content-Encoding: gzip"] * packed)
        failure = failed_call(settings(name, base_url=script.url(name)), ask())
        assert (failure.fault, len(str(failure)) < 1000) == (fault, True)
        assert status != 200 or f"more than {_MOST:,} bytes" in str(failure)


@pytest.mark.parametrize("code", [429, "429", "overloaded", 1302])
@pytest.mark.parametrize("name", WIRES)
def test_an_error_reported_under_200_is_classified_by_its_code(
    name: str, code: int | str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(200, {"error": {"code": code, "message": "upstream is busy"}}, "Retry-After: 4")
    failure = failed_call(settings(name, base_url=script.url(name)), ask())
    assert (failure.fault, failure.status, failure.retry_after) == (AttemptOutcome.RATE_LIMITED, 429, 4.0)


@pytest.mark.parametrize("host", ["127.0.0.1:9", "nobody.invalid"])
@pytest.mark.parametrize("name", WIRES)
def test_an_unreachable_server_is_a_connection_fault(
    name: str, host: str, ask: Make, settings: Make, failed_call: Failed
) -> None:
    failure = failed_call(settings(name, base_url=f"http://{host}"), ask())
    assert (failure.fault, failure.status, failure.sent) == (AttemptOutcome.CONNECTION, None, False)
    assert host.partition(":")[0] in failure.detail


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
        (400, {"message": "Content Exists Risk"}),
        (400, {"message": "Input data may contain inappropriate content.", "code": "data_inspection_failed"}),
        (400, {"message": "Invalid prompt: your prompt was flagged", "code": "invalid_prompt"}),
        (403, {"message": "Your chosen model requires moderation and your input was flagged for violence."}),
        (403, {"message": "Content violates usage guidelines."}),
    ],
)
def test_a_content_filter_error_is_a_refusal(
    status: int, error: Any, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(status, {"error": error})
    assert failed_call(settings("openai", base_url=script.url("openai")), ask()).fault is AttemptOutcome.REFUSED


def test_a_terminated_account_is_rejected_instead_of_refused(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.says(403, {"error": {"message": "Your access was terminated due to violation of our policies."}})
    assert failed_call(settings("openai", base_url=script.url("openai")), ask()).fault is AttemptOutcome.REJECTED


@pytest.mark.parametrize("name", WIRES)
def test_a_server_without_http_is_a_connection_fault(
    name: str, ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    script.response = b"SSH-2.0-OpenSSH_9.6\r\n"
    assert failed_call(settings(name, base_url=script.url(name)), ask()).fault is AttemptOutcome.CONNECTION


def test_deepseeks_insufficient_resource_is_a_server_error(
    ask: Make, settings: Make, failed_call: Failed, script: Any
) -> None:
    choice = {"message": {"content": '{"a"'}, "finish_reason": "insufficient_system_resource"}
    script.says(200, {"choices": [choice]})
    failure = failed_call(settings("deepseek_r1", base_url=script.url("deepseek_r1")), ask())
    assert failure.fault is AttemptOutcome.SERVER_ERROR
