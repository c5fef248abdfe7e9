"""Reading a provider's refusals: which fault a status is, how long to wait, and what the user should look at.

Sources: RFC 9110 10.2.3 (Retry-After), google.rpc.RetryInfo and QuotaFailure, the error codes documented by OpenAI and
DeepSeek.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.judge.calls import CallFailedError, CallFault
from rc1_lib.judge.providers.redaction import LONGEST, Redactor
from rc1_lib.judge.providers.settings import ProviderSettings

_NUMBER = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*")
_DURATION = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)s")
_QUOTA_CODES = {"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached", "billing_not_active"}
_AGAIN = {408, 409, 425}
"""Refusals that a later attempt may not meet: time-outs and conflicts on the server's side."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What an error's body says.

    Attributes:
        message: in words.
        codes: the codes, types and reasons that it names.
        details: the structured details (google.rpc), where there are any.
        status: a status inside the body, which gateways send along with HTTP 200.
    """

    message: str
    codes: frozenset[str] = frozenset()
    details: tuple[Mapping[str, Any], ...] = ()
    status: int | None = None


def read_problem(body: str) -> Problem:
    """An error's body, whichever of the customary forms it has; a body of no known form is its own message."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return Problem(body)
    if isinstance(parsed, list) and len(parsed) == 1:
        parsed = parsed[0]
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    if not isinstance(error, dict):
        return Problem(error if isinstance(error, str) else body)
    message = error.get("message", error.get("detail"))
    listed = error.get("details")
    details = tuple(detail for detail in listed if isinstance(detail, dict)) if isinstance(listed, list) else ()
    named = [error.get("code"), error.get("type"), error.get("status"), *(detail.get("reason") for detail in details)]
    code = error.get("code")
    return Problem(
        message if isinstance(message, str) and message else body,
        frozenset(name for name in named if isinstance(name, str)),
        details,
        code if isinstance(code, int) and 400 <= code < 600 else None,
    )


def retry_after(headers: Mapping[str, str], problem: Problem, *, now: float | None = None) -> float | None:
    """Seconds that the provider asks to wait; None when it does not say, or not readably.

    Args:
        headers: of the response, names in lower case. `retry-after-ms` goes before `retry-after` (a number of seconds
            or an HTTP date, taken relative to the response's own `date`), and both before google.rpc.RetryInfo.
        problem: the response's body.
        now: seconds since 1970, for responses without a date; default: the clock.
    """
    if (milliseconds := _NUMBER.fullmatch(headers.get("retry-after-ms", ""))) is not None:
        return float(milliseconds[1]) / 1000.0
    asked = headers.get("retry-after", "")
    if (seconds := _NUMBER.fullmatch(asked)) is not None:
        return float(seconds[1])
    if (until := _timestamp(asked)) is not None:
        sent = _timestamp(headers.get("date", ""))
        if sent is None:
            sent = time.time() if now is None else now
        return max(0.0, until - sent)
    for detail in problem.details:
        if (delay := _DURATION.fullmatch(str(detail.get("retryDelay", "")))) is not None:
            return float(delay[1])
    return None


def _timestamp(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        # Without a zone the date is meant as GMT, as HTTP dates are.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def classify(status: int, problem: Problem) -> CallFault:
    """Which fault an HTTP status other than success is."""
    if status == 429:
        return CallFault.REJECTED if _is_used_up(problem) else CallFault.RATE_LIMITED
    return CallFault.SERVER_ERROR if status in _AGAIN or status >= 500 else CallFault.REJECTED


def _is_used_up(problem: Problem) -> bool:
    """Whether a 429 means an empty account or a spent day, which no pause of a run mends."""
    if any(code in _QUOTA_CODES or code.startswith("billing") for code in problem.codes):
        return True
    violations = [found for detail in problem.details for found in _list(detail.get("violations"))]
    return any("PerDay" in str(found.get("quotaId", "")) for found in violations)


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def refused(
    status: int,
    headers: Mapping[str, str],
    problem: Problem,
    *,
    settings: ProviderSettings,
    host: str,
    redactor: Redactor,
) -> CallFailedError:
    """The failure that a response with an error's status is."""
    fault = classify(status, problem)
    wait = retry_after(headers, problem) if fault in {CallFault.RATE_LIMITED, CallFault.SERVER_ERROR} else None
    hint = redactor.line(_hint(status, problem, settings, host)) if fault is CallFault.REJECTED else ""
    said = f"HTTP {status} from {host}: {problem.message.strip() or 'no message'}"
    if hint:
        said = f"{redactor.line(said, LONGEST - len(hint) - 2).rstrip('.')}. {hint}"
    return CallFailedError(fault, redactor.line(said), status=status, retry_after=wait)


def _hint(status: int, problem: Problem, settings: ProviderSettings, host: str) -> str:
    model = f"judge.model ({settings.model})"
    if status in {402, 429}:
        return f"No quota or balance is left for the key in {KEY_VARIABLE}; top up the account or use another key."
    if status in {401, 403} or "API_KEY_INVALID" in problem.codes:
        return f"Check the key in {KEY_VARIABLE}: it has to be one of {host} with access to {model}."
    if status == 404:
        return f"Check {model} and the path of judge.base_url."
    if status < 400:
        return "Set judge.base_url to the address that it redirects to."
    if settings.structured:
        return f"Check {model} and judge.sampling; set judge.structured: false if it takes no JSON schema."
    return f"Check {model} and judge.sampling."
