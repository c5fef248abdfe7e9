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
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import LONGEST, Endpoint, Redactor

_NUMBER = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*")
_DURATION = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)s")
_UNIT_S = {
    "ms": 0.001, "milliseconds": 0.001, "millisecond": 0.001, "毫秒": 0.001,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "秒": 1.0, "秒钟": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "分": 60.0, "分钟": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "小时": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_PIECE = rf"(\d{{1,9}}(?:\.\d{{1,15}})?)\s*({'|'.join(sorted(_UNIT_S, key=len, reverse=True))})(?![A-Za-z])"
_PIECES = re.compile(_PIECE, re.I)
_WHOLE_PIECES = re.compile(rf"\s*(?:{_PIECE.replace('(?![A-Za-z])', '')}\s*)+", re.I)
_IN_WORDS = re.compile(
    rf"(?:try again|retry|retrying|wait|resets?|available again|请|等待|稍后)\D{{0,24}}?((?:{_PIECE}[\s,]*(?:and )?)+)",
    re.I,
)
"""`Please try again in 1m26.4s`, `retry after 43 seconds`, `wait 250ms`, `请 30 秒后重试`."""
_RESET = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:reset(?:-\w+)?|\w+-reset)")
_LONG_AGO = 1e9
"""Numbers from here on are timestamps in seconds since 1970; from a thousand times this on, in milliseconds."""
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
_UNFIT = {400, 404, 422}
_TOO_LONG = re.compile(r"context.{0,8}(?:length|window|size)|(?:prompt|input) is too long|reduce the length", re.I)
_AGAIN = {408, 409, 425}
"""Refusals that a retry may avoid: timeouts and conflicts on the server's side."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The parsed body of an error response.

    Attributes:
        message: the message.
        codes: all codes, types and reasons.
        details: structured details (google.rpc); empty without any.
        status: the status inside the body, which gateways send with HTTP 200; None without one.
        parameter: the parameter at fault; empty if none is named.
    """

    message: str
    codes: frozenset[str] = frozenset()
    details: tuple[Mapping[str, Any], ...] = ()
    status: int | None = None
    parameter: str = ""


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
    code, parameter = error.get("code"), error.get("param")
    return Problem(
        message if isinstance(message, str) and message else body,
        frozenset(name for name in named if isinstance(name, str)),
        details,
        code if isinstance(code, int) and 400 <= code < 600 else None,
        parameter if isinstance(parameter, str) else "",
    )


def retry_after(
    headers: Mapping[str, str], problem: Problem, *, now: float | None = None, limited: bool = True
) -> float | None:
    """Return the seconds that the provider asks to wait; None if it does not say, or not readably.

    In order of precedence: `retry-after-ms`, `retry-after` (seconds, or an HTTP date relative to the response's
    `date`), google.rpc.RetryInfo, the words of the message, and `x-ratelimit-reset-*` of a limit that is used up.

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
        return max(0.0, until - _sent_at(headers, now))
    for detail in problem.details:
        if (delay := _DURATION.fullmatch(str(detail.get("retryDelay", "")))) is not None:
            return float(delay[1])
    if (said := _IN_WORDS.search(problem.message)) is not None:
        return _seconds(said[1])
    return _reset(headers, now) if limited else None


def _seconds(text: str) -> float:
    return sum(float(number) * _UNIT_S[unit.lower()] for number, unit in _PIECES.findall(text))


def _sent_at(headers: Mapping[str, str], now: float | None) -> float:
    sent = _timestamp(headers.get("date", ""))
    if sent is None:
        sent = time.time() if now is None else now
    return sent


def _reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds until all used-up limits have reset; until all limits have, if no remainder is given."""
    waits: list[tuple[float, str | None]] = []
    for header, value in headers.items():
        if _RESET.fullmatch(header) and (wait := _until(value, headers, now)) is not None:
            waits.append((wait, headers.get(header.replace("-reset", "-remaining", 1))))
    known = [(wait, rest) for wait, rest in waits if rest is not None]
    return max((wait for wait, rest in known or waits if rest is None or rest.strip() in {"0", "0.0"}), default=None)


def _until(value: str, headers: Mapping[str, str], now: float | None) -> float | None:
    """Convert a reset value to seconds from now: `6m0s`, `20ms`, `1.5`, a time since 1970, or a date (RFC 3339)."""
    if (number := _NUMBER.fullmatch(value)) is not None:
        seconds = float(number[1])
        if seconds < _LONG_AGO:
            return seconds
        return max(0.0, seconds / (1000.0 if seconds >= 1000 * _LONG_AGO else 1.0) - _sent_at(headers, now))
    if _WHOLE_PIECES.fullmatch(value):
        return _seconds(value)
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - _sent_at(headers, now))


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
        return AttemptOutcome.REJECTED if _is_used_up(problem) else AttemptOutcome.RATE_LIMITED
    if status in _MAY_DECLINE and (problem.codes & _FILTERS or _FILTERED.search(problem.message)):
        return AttemptOutcome.REFUSED
    return AttemptOutcome.SERVER_ERROR if status in _AGAIN or status >= 500 else AttemptOutcome.REJECTED


def _is_used_up(problem: Problem) -> bool:
    """Whether a 429 means an empty account or a spent daily quota, which no pause during a run can fix."""
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
    config: JudgeConfig,
    endpoint: Endpoint,
    redactor: Redactor,
) -> CallFailedError:
    """Turn a response with an error status into a failure."""
    fault = classify(status, problem)
    remedies = _remedies(status, problem, config) if fault is AttemptOutcome.REJECTED else ()
    asks = fault in {AttemptOutcome.RATE_LIMITED, AttemptOutcome.SERVER_ERROR}
    wait = retry_after(headers, problem, limited=fault is AttemptOutcome.RATE_LIMITED) if asks else None
    hint = redactor.line(_hint(status, problem, config, endpoint, remedies)) if fault is AttemptOutcome.REJECTED else ""
    said = f"HTTP {status} from {endpoint.host}: {problem.message.strip() or 'no message'}"
    if hint:
        said = f"{redactor.line(said, LONGEST - len(hint) - 2).rstrip('.')}. {hint}"
    return CallFailedError(fault, redactor.line(said), status=status, retry_after=wait, remedies=remedies)


_SCHEMA = re.compile(
    r"response.?(?:format|mime|json|schema)|json.?(?:schema|mode|object)|structured.?output|guided|grammar|output.?config",
    re.I,
)
_TOOL = re.compile(r"tool|function.?(?:call|declaration)", re.I)
_SYSTEM = re.compile(r"(?:system|developer).{0,4}(?:role|message|prompt|instruction)|role.{0,40}['\"`]?system", re.I)
_LIMIT = re.compile(r"max_?(?:completion_?|output_?|new_?)?tokens", re.I)
_TOP_P = re.compile(r"\btop_?p\b", re.I)
_TEMPERATURE = re.compile(r"temperature", re.I)


def _remedies(status: int, problem: Problem, config: JudgeConfig) -> tuple[str, ...]:
    """Return settings that may avoid a refusal of a named parameter, most likely first."""
    for said in (problem.parameter, problem.message):
        if status not in _UNFIT or _TOO_LONG.search(said) or (status == 404 and "support" not in said):
            continue
        if config.channel == "schema" and _SCHEMA.search(said):
            return "judge.channel=tool", "judge.channel=text"
        if config.channel == "tool" and _TOOL.search(said):
            return ("judge.channel=text",)
        if _LIMIT.search(said):
            sent = config.names.get("max_tokens", "max_tokens")
            other = "max_completion_tokens" if sent == "max_tokens" else "max_tokens"
            renamed = _renamed(config, max_tokens=other)
            return (*((renamed,) if config.provider != "gemini" else ()), "judge.sampling.max_tokens=null")
        if _TOP_P.search(said):
            return "judge.sampling.top_p=null", "judge.sampling.temperature=null"
        if _TEMPERATURE.search(said):
            return ("judge.sampling.temperature=null",)
        if _SYSTEM.search(said) and "system" not in config.names:
            return (_renamed(config, system="user"),)
    return ()


def _renamed(config: JudgeConfig, **more: str) -> str:
    names = {str(ours): theirs for ours, theirs in config.names.items()} | more
    return f"judge.names={{{', '.join(f'{ours}: {theirs}' for ours, theirs in names.items())}}}"


def _hint(status: int, problem: Problem, config: JudgeConfig, endpoint: Endpoint, remedies: tuple[str, ...]) -> str:
    model, host = f"judge.model ({endpoint.model})", endpoint.host
    if remedies:
        return f"Try --set '{remedies[0]}'; rc1 probe-scorer finds all the settings needed."
    if status in {400, 413, 422} and _TOO_LONG.search(problem.message):
        return f"The dialogue and judge.sampling.max_tokens exceed the context window of {model}."
    if status in {402, 429}:
        return f"No quota or balance is left for the key in {KEY_VARIABLE}; top up the account or use another key."
    if status in {401, 403} and not endpoint.secret:
        return f"No key was sent because {KEY_VARIABLE} is not set, and {host} requires one; set it in the environment."
    if status in {401, 403} or "API_KEY_INVALID" in problem.codes:
        return f"Check the key in {KEY_VARIABLE}: it must be a key of {host} with access to {model}."
    if status == 404:
        return f"Check {model} and the path of judge.base_url."
    if status < 400:
        return "Set judge.base_url to the address that it redirects to."
    other = {"schema": "tool or text", "tool": "text"}.get(config.channel, "")
    return f"Check {model} and judge.sampling" + (f"; or set judge.channel to {other}." if other else ".")
