"""Reading how long a provider asks to wait, and its error messages."""

from __future__ import annotations

import json

import pytest

from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.judge.providers.faults import Problem, classify, read_problem, retry_after

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT
EMPTY = Problem("")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}, 30.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:07 GMT", "date": "Sun, 06 Nov 1994 08:50:00 GMT"}, 7.0),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_headers_are_read_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, EMPTY, now=NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "2", "x-ratelimit-reset-tokens": "1.5s"}, 2.0),
        (
            {
                "x-ratelimit-reset-requests": "8m", "x-ratelimit-remaining-requests": "17",
                "x-ratelimit-reset-tokens": "1.5s", "x-ratelimit-remaining-tokens": "0",
            },
            1.5,
        ),
        ({"x-ratelimit-reset-requests": "8m", "x-ratelimit-remaining-requests": "17"}, None),
        ({"x-ratelimit-reset": "1700000000000"}, None),
        ({"x-ratelimit-reset-requests": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset-tokens": "soon"}, None),
    ],
)  # fmt: skip
def test_waits_in_rate_limit_reset_headers_are_read(headers: dict[str, str], seconds: float | None) -> None:
    found = retry_after(headers, EMPTY, now=NOW)
    assert found == (seconds if seconds is None else pytest.approx(seconds))
    assert retry_after(headers, EMPTY, now=NOW, limited=False) is None


@pytest.mark.parametrize(("delay", "seconds"), [("0.25s", 0.25), ("17", None), ("-1s", None), (5, None)])
def test_googles_retry_info_is_read(delay: object, seconds: float | None) -> None:
    problem = Problem("", details=({"links": []}, {"retryDelay": delay}))
    assert retry_after({}, problem) == seconds
    assert retry_after({"retry-after": "3"}, problem) == 3.0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "no"}}', "no"),
        ('[{"error": {"message": "no"}}]', "no"),
        ('{"object": "error", "message": "no"}', "no"),
        ('{"detail": "no"}', "no"),
        ("no", "no"),
        ('{"error": {"message": 3}}', '{"error": {"message": 3}}'),
    ],
)
def test_messages_of_errors_are_read_from_every_form(body: str, message: str) -> None:
    assert read_problem(body).message == message


@pytest.mark.parametrize(
    ("code", "status"),
    [(429, 429), ("429", 429), (503, 503), ("overloaded", 429), (1302, 429), (200, None), ("unknown", None)],
)
def test_a_status_or_code_inside_the_body_is_read(code: object, status: int | None) -> None:
    assert read_problem(json.dumps({"error": {"message": "no", "code": code}})).status == status


def test_an_error_without_codes_is_classified_by_its_status() -> None:
    assert classify(429, EMPTY) is AttemptOutcome.RATE_LIMITED
    assert classify(429, read_problem('{"error": {"code": "billing_not_active"}}')) is AttemptOutcome.REJECTED
    assert classify(429, read_problem('{"error": {"details": [{"violations": [3]}]}}')) is AttemptOutcome.RATE_LIMITED
