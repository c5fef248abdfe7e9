"""Parse a reply: return its scores, or say why it has none and which setting to change.

A reply counts only if it is unambiguous: one JSON object with a reason and exactly the dimensions, wherever the model
put it. Nothing is clipped, guessed or filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rc1_lib.config.judge import Channel
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome
from rc1_lib.records import Message

REASON = "reason"
_FENCED = re.compile(r"(?P<mark>```|~~~)[ \t]*\w*\s*(?P<body>.*?)\s*(?P=mark)", re.S)
_TAGS = "think|thinking|thoughts?|reasoning|reflection"
_THOUGHT = re.compile(rf"<(?:{_TAGS})>|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>", re.I)
_SPOKEN = re.compile(rf"</(?:{_TAGS})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>", re.I)
"""The markers where thinking begins and ends. Chat templates often leave out the first."""
_NOT_JSON = object()
_ALTERNATIVE: Mapping[Channel, str] = {"schema": "judge.channel=tool", "tool": "judge.channel=text", "text": ""}
"""What to set if a model does not keep to the format that a channel asks for."""


class BadReplyError(ValueError):
    """A reply without valid scores; the message says why.

    Attributes:
        outcome: how it counts: only `bad_reply` is worth another attempt.
        partial: whether a token limit may have cut off what is missing.
    """

    def __init__(
        self,
        why: str,
        outcome: AttemptOutcome = AttemptOutcome.BAD_REPLY,
        remedy: str = "",
        *,
        partial: bool = False,
    ) -> None:
        super().__init__(why + (f"; set {remedy}" if remedy else ""))
        self.outcome, self.partial = outcome, partial


def read_answer(answer: Answer, ask: Ask, dimensions: Iterable[str], channel: Channel) -> dict[str, float]:
    """Return the scores in a provider's answer.

    Args:
        answer: what came back.
        dimensions: the names that the reply has to hold.
        channel: how scores were asked for.

    Raises:
        BadReplyError: if the reply is incomplete or holds no scores.
    """
    limit = ask.sampling.max_tokens
    more = "" if limit is None else f"judge.sampling.max_tokens={2 * limit}"
    spent = limit is not None and answer.tokens_out >= limit
    match answer.finish:
        case "refusal":
            raise BadReplyError("declined to grade this dialogue", AttemptOutcome.REFUSED)
        case "length":
            raise BadReplyError("was cut off", AttemptOutcome.TRUNCATED, more)
        case "unknown":
            raise BadReplyError(
                f"ended with '{answer.reason}', which RC1 does not know, so it may be incomplete; use another model "
                f"(judge.model) or server (judge.base_url)",
                AttemptOutcome.UNREADABLE,
            )
    text = answer.text
    if not text.strip("\ufeff \t\r\n"):
        if not answer.thoughts.strip():
            raise BadReplyError("is empty", remedy=more if spent else "")
        if spent:
            raise BadReplyError("is empty: thinking took all of its tokens", AttemptOutcome.TRUNCATED, more)
        if _parse_json(answer.thoughts) is _NOT_JSON:
            reason = "is empty: the model thought, and then wrote nothing"
            raise BadReplyError(reason, AttemptOutcome.UNREADABLE, _ALTERNATIVE[channel] or more)
        text = answer.thoughts  # servers that take a whole reply for thinking put the JSON there, and nothing else
    try:
        if spent and not _find_json(text, channel)[1]:  # the part cut off may have revised the object
            raise BadReplyError("is more than its grades", partial=True)
        return read_scores(text, dimensions, channel=channel, dialogue=ask.messages)
    except BadReplyError as error:
        if error.outcome is AttemptOutcome.TRUNCATED:
            raise BadReplyError(str(error), error.outcome, more) from None
        if spent and error.partial:
            reason = "was cut off, although the provider reports it as complete"
            raise BadReplyError(reason, AttemptOutcome.TRUNCATED, more) from None
        raise


def read_scores(
    text: str, dimensions: Iterable[str], *, channel: Channel = "text", dialogue: Sequence[Message] = ()
) -> dict[str, float]:
    """Return the scores in a reply's text.

    Args:
        text: one JSON object, alone, in a fence, after thinking or between words.
        dimensions: the names that it has to hold, each with a number in [0, 1].
        channel: how scores were asked for.
        dialogue: the graded dialogue. If it mentions all dimensions itself, the reply must be the object alone: between
            words, the judge may be quoting.

    Raises:
        BadReplyError: if it is not JSON, holds other keys, or any value is not a number in [0, 1].
    """
    names = tuple(dimensions)
    body, alone = _find_json(text, channel)
    if not alone and all(name in said for said in [_said(dialogue)] for name in names):
        raise BadReplyError("holds more than its grades, and the dialogue mentions grades too: it may be a quotation")
    if not isinstance(body, dict):
        raise BadReplyError(f"is a JSON {type(body).__name__}, expected an object")
    missing = [name for name in (*names, REASON) if name not in body]
    unknown = [name for name in body if name not in names and name != REASON]
    if missing or unknown:
        raise BadReplyError("; ".join(_list_keys(("lacks", missing), ("has unknown keys:", unknown))))
    if not isinstance(body[REASON], str):
        raise BadReplyError(f"has a {REASON} that is not a string")
    return {name: _score(name, body[name]) for name in names}


_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")


def _said(dialogue: Sequence[Message]) -> str:
    """Return all that a dialogue says, in its calls too, which a policy writes itself."""
    said = "\n".join(f"{one.get('content') or ''}\n{json.dumps(one.get('tool_calls') or [])}" for one in dialogue)
    return _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), said)


def _find_json(text: str, channel: Channel) -> tuple[Any, bool]:
    """Return the only JSON value of a text, and whether the text holds nothing else but a fence around it."""
    text = text.strip("\ufeff \t\r\n")
    if (body := _parse_json(text)) is not _NOT_JSON:
        return body, True
    spoken = _SPOKEN.split(text)[-1]
    if _THOUGHT.search(spoken):
        raise BadReplyError("is thinking that was cut off", AttemptOutcome.TRUNCATED)
    spoken = spoken.strip()
    inner = fence["body"] if (fence := _FENCED.fullmatch(spoken)) else spoken
    if (body := _parse_json(inner)) is not _NOT_JSON:
        return body, spoken == text
    start = spoken.find("{")
    if start < 0:
        reason = "contains no JSON, only words" if spoken else "contains only thinking"
        raise BadReplyError(reason, remedy=_ALTERNATIVE[channel], partial=True)
    try:
        body, end = _DECODER.raw_decode(spoken, start)
    except BadReplyError:
        raise
    except json.JSONDecodeError as error:
        if error.pos >= len(spoken) - 1 or error.msg.startswith("Unterminated"):
            raise BadReplyError("breaks off in the middle of its JSON", partial=True) from None
        raise BadReplyError(f"is not one JSON object ({error.msg})") from None
    except (ValueError, RecursionError):
        raise BadReplyError("is not one JSON object") from None
    if set(spoken[:start] + spoken[end:]) & set("{}"):
        raise BadReplyError("is not one JSON object but several", remedy=_ALTERNATIVE[channel])
    return body, False


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except BadReplyError:
        raise
    except (ValueError, RecursionError):
        return _NOT_JSON


def _score(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        found = f"a {type(value).__name__}" if isinstance(value, dict | list) else json.dumps(value)[:40]
        raise BadReplyError(f"has {name} = {found}, expected a number")
    if not 0 <= value <= 1:  # also rejects NaN, infinities and integers too large for a float
        raise BadReplyError(f"has {name} = {str(value)[:20]}, expected a number from 0 to 1")
    return float(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadReplyError("has a key twice, so it is unclear which value counts")
    return found


def _no_constant(name: str) -> float:
    raise BadReplyError(f"contains {name}, expected a number from 0 to 1")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _list_keys(*lists: tuple[str, list[str]]) -> list[str]:
    return [f"{what} {', '.join(map(_printable, names[:5]))}" for what, names in lists if names]


def _printable(name: str) -> str:
    """Make a key printable: it may hold anything, even a lone surrogate."""
    return ascii(name[:40])[1:-1]
