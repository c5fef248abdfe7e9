"""Reading a reply: the scores that it holds, or the cause why there are none and the setting to change.

A reply is read where it can mean one thing only: one JSON object with a reason and exactly the dimensions, wherever the
model put it. Nothing is clipped, guessed or filled in.
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
"""Where thinking begins and ends in a text. Chat templates often leave out what begins it."""
_NOT_JSON = object()
_OTHERWISE: Mapping[Channel, tuple[str, ...]] = {
    "schema": ("judge.channel=tool", "judge.channel=text"), "tool": ("judge.channel=text",), "text": (),
}  # fmt: skip
"""What may help where a model does not keep to the form that a channel asks for."""


class BadReplyError(ValueError):
    """A reply that holds no scores; the message says why.

    Attributes:
        outcome: what it counts as: `bad_reply` is worth another try, nothing else is.
        remedies: `KEY=VALUE`, settings that may help, the likeliest first.
        partial: whether what it lacks may be what a limit cut off.
    """

    def __init__(
        self,
        why: str,
        outcome: AttemptOutcome = AttemptOutcome.BAD_REPLY,
        remedies: tuple[str, ...] = (),
        *,
        partial: bool = False,
    ) -> None:
        super().__init__(why + (f"; set {remedies[0]}" if remedies else ""))
        self.outcome, self.remedies, self.partial = outcome, remedies, partial


def read_answer(answer: Answer, ask: Ask, dimensions: Iterable[str], channel: Channel) -> dict[str, float]:
    """The scores of what a provider returned.

    Args:
        answer: what came back.
        ask: what was asked.
        dimensions: the names that the reply has to hold.
        channel: how it was asked for.

    Raises:
        BadReplyError: when it ended otherwise than whole, or holds no scores.
    """
    limit = ask.sampling.max_tokens
    more = () if limit is None else (f"judge.sampling.max_tokens={2 * limit}",)
    spent = limit is not None and answer.tokens_out >= limit
    match answer.finish:
        case "refusal":
            raise BadReplyError("declined to grade this dialogue", AttemptOutcome.REFUSED)
        case "length":
            raise BadReplyError("was cut off", AttemptOutcome.TRUNCATED, more)
        case "unknown":
            raise BadReplyError(
                f"ended with '{answer.reason}', which RC1 does not know, so it may not be whole; ask another model "
                f"(judge.model) or server (judge.base_url)",
                AttemptOutcome.UNREADABLE,
            )
    text = answer.text
    if not text.strip("\ufeff \t\r\n"):
        if not answer.thoughts.strip():
            raise BadReplyError("is empty", remedies=more if spent else ())
        if spent:
            raise BadReplyError("is empty: thinking took all of its tokens", AttemptOutcome.TRUNCATED, more)
        if _parsed(answer.thoughts) is _NOT_JSON:
            said = "is empty: the model thought, and then wrote nothing"
            raise BadReplyError(said, AttemptOutcome.UNREADABLE, _OTHERWISE[channel] or more)
        text = answer.thoughts  # servers that take all of a reply for thinking put the JSON there, and nothing else
    try:
        if spent and not _found(text, channel)[1]:  # what was cut off may have taken the object back
            raise BadReplyError("is more than its grades", partial=True)
        return read_scores(text, dimensions, channel=channel, dialogue=ask.messages)
    except BadReplyError as error:
        if error.outcome is AttemptOutcome.TRUNCATED:
            raise BadReplyError(str(error), error.outcome, more) from None
        if spent and error.partial:
            said = "was cut off, although the provider says that it is whole"
            raise BadReplyError(said, AttemptOutcome.TRUNCATED, more) from None
        raise


def read_scores(
    text: str, dimensions: Iterable[str], *, channel: Channel = "text", dialogue: Sequence[Message] = ()
) -> dict[str, float]:
    """The scores of a reply's text.

    Args:
        text: one JSON object, alone, in a fence, after thinking or between words.
        dimensions: the names that it has to hold, each with a number in [0, 1].
        channel: how it was asked for.
        dialogue: what was graded. Where it speaks of all dimensions itself, only a reply that is the object alone is
            read: between words the judge may be quoting.

    Raises:
        BadReplyError: when it is not JSON, holds other keys, or any value is not a number in [0, 1].
    """
    wanted = tuple(dimensions)
    body, alone = _found(text, channel)
    if not alone and any(all(name in (message.get("content") or "") for name in wanted) for message in dialogue):
        raise BadReplyError("holds more than its grades, and the dialogue speaks of grades too: it may be a quotation")
    if not isinstance(body, dict):
        raise BadReplyError(f"is a JSON {type(body).__name__}, expected an object")
    missing = [name for name in (*wanted, REASON) if name not in body]
    strange = [name for name in body if name not in wanted and name != REASON]
    if missing or strange:
        raise BadReplyError("; ".join(_named(("lacks", missing), ("holds the unknown", strange))))
    if not isinstance(body[REASON], str):
        raise BadReplyError(f"holds a {REASON} that is no text")
    return {name: _score(name, body[name]) for name in wanted}


def _found(text: str, channel: Channel) -> tuple[Any, bool]:
    """The one JSON value of a text, and whether it is all there is, if need be in a fence."""
    text = text.strip("\ufeff \t\r\n")
    if (body := _parsed(text)) is not _NOT_JSON:
        return body, True
    spoken = _SPOKEN.split(text)[-1]
    if _THOUGHT.search(spoken):
        raise BadReplyError("is thinking that was cut off", AttemptOutcome.TRUNCATED)
    spoken = spoken.strip()
    inner = fence["body"] if (fence := _FENCED.fullmatch(spoken)) else spoken
    if (body := _parsed(inner)) is not _NOT_JSON:
        return body, spoken == text
    start = spoken.find("{")
    if start < 0:
        said = "is words without JSON" if spoken else "contains only thinking"
        raise BadReplyError(said, remedies=_OTHERWISE[channel], partial=True)
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
        raise BadReplyError("is not one JSON object but several", remedies=_OTHERWISE[channel])
    return body, False


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except BadReplyError:
        raise
    except (ValueError, RecursionError):
        return _NOT_JSON


def _score(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReplyError(f"holds {name} = {json.dumps(value)[:40]}, expected a number")
    if not 0 <= value <= 1:  # NaN, infinities and whole numbers that no float can hold among what is not
        raise BadReplyError(f"holds {name} = {str(value)[:20]}, expected a number from 0 to 1")
    return float(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadReplyError("names a key twice, so it does not say which value counts")
    return found


def _no_constant(name: str) -> float:
    raise BadReplyError(f"holds {name}, expected a number from 0 to 1")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _named(*lists: tuple[str, list[str]]) -> list[str]:
    return [f"{what} {', '.join(map(_shown, names[:5]))}" for what, names in lists if names]


def _shown(name: str) -> str:
    """A key as it can be shown: it may hold anything, half a surrogate pair included."""
    return ascii(name[:40])[1:-1]
