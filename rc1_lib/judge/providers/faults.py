"""Interpret a provider's error responses: the kind of fault, how long to wait, and what the user should check.

Sources: RFC 9110 10.2.3 (Retry-After), google.rpc.RetryInfo and QuotaFailure, the error codes documented by OpenAI,
Azure and DeepSeek, and error messages that users of other tools reported.
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
from rc1_lib.judge.calls import AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import LONGEST, Endpoint, Redactor

_NUMBER = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*")
_DURATION = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)s")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECES = re.compile(r"(\d{1,9}(?:\.\d{1,15})?)(ms|[smhd])")
_RESET = "x-ratelimit-reset"
_LONG_AGO = 1e9
"""Numbers from here on are times since 1970, which some gateways send: they are not read."""
_QUOTA_CODES = {"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached", "billing_not_active"}
_FILTERS = {
    "content_filter", "ResponsibleAIPolicyViolation", "content_policy_violation", "data_inspection_failed",
    "DataInspectionFailed", "invalid_prompt", "moderation_blocked",
}  # fmt: skip
_FILTERED = re.compile(
    r"content (?:management policy|exists risk|violates|policy violation)|content.?filter|(?:input|prompt) (?:was|were)"
    r" flagged|responsible.?ai|data.?inspection|inappropriate content|敏感|违规",
    re.I,
)
_MAY_DECLINE = {400, 403, 422, 451}
_BUSY = {"overloaded", "overloaded_error", "rate_limit_exceeded", "1302", "1303", "1305"}
"""Codes that a response under HTTP 200 may hold in place of 429: names, and Zhipu's numbers."""
_NEVER_FITS = "request too large"
"""OpenAI's words for a request that is above the limit of a whole minute; it has the code of any other 429."""
_AGAIN = {408, 409, 425}
"""Refusals that a retry may avoid: timeouts and conflicts on the server's side."""
_OF_ALL = {401, 402, 403, 404, 429}
"""Refusals of the key, the model or the quota, which meet every other call too."""
_BAD_KEY = "API_KEY_INVALID"
"""Gemini's code for a rejected key, which it sends under HTTP 400."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The parsed body of an error response.

    Attributes:
        codes: all codes, types and reasons.
        details: structured details (google.rpc); empty without any.
        status: the status inside the body, which gateways send with HTTP 200; None without one.
    """

    message: str
    codes: frozenset[str] = frozenset()
    details: tuple[Mapping[str, Any], ...] = ()
    status: int | None = None


def read_problem(body: str) -> Problem:
    """Parse an error's body in any of the usual formats; a body in another format becomes the message."""
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
    inner = error.get("innererror", error.get("inner_error"))
    named = [error.get("code"), error.get("type"), error.get("status"), *(detail.get("reason") for detail in details)]
    named += [inner.get("code")] if isinstance(inner, dict) else []
    codes = frozenset(str(name) for name in named if isinstance(name, str | int))
    numbers = (int(code) for code in codes if code.isdecimal() and len(code) == 3)
    status = next((number for number in numbers if 400 <= number < 600), 429 if codes & _BUSY else None)
    return Problem(message if isinstance(message, str) and message else body, codes, details, status)


def retry_after(
    headers: Mapping[str, str], problem: Problem, *, now: float | None = None, limited: bool = True
) -> float | None:
    """Return the seconds that the provider asks to wait; None if it does not say, or not readably.

    In order of precedence: `retry-after-ms`, `retry-after` (seconds, or an HTTP date relative to the response's
    `date`), google.rpc.RetryInfo, and `x-ratelimit-reset-*` of a limit that is used up.

    Args:
        headers: of the response, names in lower case.
        problem: the response's body.
        now: seconds since 1970, for responses without a date; default: the clock.
        limited: whether a limit refused the request; otherwise the times at which limits reset are ignored.
    """
    if (milliseconds := _NUMBER.fullmatch(headers.get("retry-after-ms", ""))) is not None:
        return float(milliseconds[1]) / 1000.0
    asked = headers.get("retry-after", "")
    if (seconds := _NUMBER.fullmatch(asked)) is not None:
        return float(seconds[1])
    if (until := _timestamp(asked)) is not None:
        sent = _timestamp(headers.get("date", ""))
        return max(0.0, until - (sent if sent is not None else time.time() if now is None else now))
    for detail in problem.details:
        if (delay := _DURATION.fullmatch(str(detail.get("retryDelay", "")))) is not None:
            return float(delay[1])
    return _reset(headers) if limited else None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until all used-up limits have reset; until all limits have, if no remainder is given."""
    waits = [
        (wait, headers.get(header.replace("-reset", "-remaining")))
        for header, value in headers.items()
        if header.startswith(_RESET) and (wait := _seconds(value.strip())) is not None
    ]
    known = [wait for wait, rest in waits if rest is not None]
    return max((wait for wait, rest in waits if (rest is None and not known) or rest in ("0", "0.0")), default=None)


def _seconds(value: str) -> float | None:
    """Convert `6m0s`, `20ms` or `1.5` to seconds; None for anything else."""
    if (number := _NUMBER.fullmatch(value)) is not None:
        return float(number[1]) if float(number[1]) < _LONG_AGO else None
    if not value or _PIECES.sub("", value):
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PIECES.findall(value))


def _timestamp(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        # A date without a zone means GMT, as in HTTP dates.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def classify(status: int, problem: Problem) -> AttemptOutcome:
    """Return the kind of fault of an HTTP error status."""
    if status == 429:
        never = _is_used_up(problem) or _never_fits(problem)
        return AttemptOutcome.REJECTED if never else AttemptOutcome.RATE_LIMITED
    if status in _MAY_DECLINE and (problem.codes & _FILTERS or _FILTERED.search(problem.message)):
        return AttemptOutcome.REFUSED
    return AttemptOutcome.SERVER_ERROR if status in _AGAIN or status >= 500 else AttemptOutcome.REJECTED


def _is_used_up(problem: Problem) -> bool:
    """Whether a 429 means an empty account or a spent daily quota, which no pause during a run can fix."""
    if any(code in _QUOTA_CODES or code.startswith("billing") for code in problem.codes):
        return True
    violations = [found for detail in problem.details for found in _list(detail.get("violations"))]
    return any("PerDay" in str(found.get("quotaId", "")) for found in violations)


def _never_fits(problem: Problem) -> bool:
    return problem.message.lower().startswith(_NEVER_FITS)


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def refused(
    status: int,
    headers: Mapping[str, str],
    problem: Problem,
    endpoint: Endpoint,
    redactor: Redactor,
) -> CallFailedError:
    """Turn a response with an error status into a failure that has the provider's own sentence."""
    fault = classify(status, problem)
    asks = fault in {AttemptOutcome.RATE_LIMITED, AttemptOutcome.SERVER_ERROR}
    wait = retry_after(headers, problem, limited=fault is AttemptOutcome.RATE_LIMITED) if asks else None
    said = f"HTTP {status} from {endpoint.host}: {problem.message.strip() or 'no message'}"
    final = fault is AttemptOutcome.REJECTED
    if final and (hint := redactor.line(_hint(status, problem, endpoint))):
        said = f"{redactor.line(said, LONGEST - len(hint) - 2).rstrip('.')}. {hint}"
    of_all = final and (status in _OF_ALL or _BAD_KEY in problem.codes) and not _never_fits(problem)
    return CallFailedError(fault, redactor.line(said), status=status, retry_after=wait, of_all=of_all)


def _hint(status: int, problem: Problem, endpoint: Endpoint) -> str:
    model, host = f"judge.model ({endpoint.model})", endpoint.host
    if _never_fits(problem):
        return "No wait helps: lower judge.sampling.max_tokens, or use a key with a higher limit."
    if status in {402, 429}:
        return f"No quota or balance is left for the key in {KEY_VARIABLE}; top up the account or use another key."
    if status in {401, 403} and not endpoint.secret:
        return f"No key was sent because {KEY_VARIABLE} is not set, and {host} requires one; set it in the environment."
    if status in {401, 403} or _BAD_KEY in problem.codes:
        return f"Check the key in {KEY_VARIABLE}: it must be a key of {host} with access to {model}."
    if status == 404:
        return f"Check {model} and the path of judge.base_url."
    if status < 400:
        return "Set judge.base_url to the address that it redirects to."
    return "docs/judge.md says what to set where a server refuses a parameter (judge.sampling, names, channel)."
