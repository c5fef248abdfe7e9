"""A dialogue as the local rubric and the rules read it: who said what, which calls were made, what each returned.

It accepts any input: a value that is not a text counts as empty, and a call without an answer has no result.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rc1_lib.records import Message
from rc1_lib.rows.chat import ANSWER_MARK, count
from rc1_lib.text.tokens import tokenize

CALC = "calc"
"""The tool that calculates and compares."""
VERDICTS = frozenset({"yes", "no", "是", "否"})
"""One-word answers, for which no page or sum can be quoted."""
_MARK = re.compile("|".join(re.escape(mark.strip()) for mark in ANSWER_MARK.values()))


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: name, raw arguments, index of its message, and result (empty without one)."""

    name: str
    arguments: str
    place: int
    result: str = ""

    @property
    def parsed(self) -> object:
        """The decoded arguments; None if they are not JSON."""
        try:
            return json.loads(self.arguments)
        except (ValueError, RecursionError):
            # ValueError also means a number with more digits than Python converts.
            return None

    @property
    def said(self) -> str:
        """The arguments' values as text, without the parameters' names."""
        parsed = self.parsed
        return " ".join(str(value) for value in parsed.values()) if isinstance(parsed, dict) else self.arguments


@dataclass(frozen=True)
class Transcript:
    """One dialogue; values that several readers need are computed once.

    Attributes:
        spoken: role and text of every message, in order; the text is empty if the content is not a text.
        calls: every tool call, in order.
        questions: number of clarifications, as `rc1_lib.rows.chat` counts them.
        final: the last message if it is the assistant's, else empty.
    """

    spoken: tuple[tuple[str, str], ...]
    calls: tuple[Call, ...]
    questions: int
    final: str

    @property
    def asked(self) -> str:
        """The user's first message."""
        return next((text for role, text in self.spoken if role == "user"), "")

    @property
    def _split_final(self) -> tuple[str, str | None]:
        """The final message before and after its first answer mark; None after it if there is no mark."""
        mark = _MARK.search(self.final)
        return (self.final[: mark.start()], self.final[mark.end() :].strip()) if mark else (self.final, None)

    @cached_property
    def answer_text(self) -> str:
        """The text after the answer mark; empty without one."""
        return self._split_final[1] or ""

    @cached_property
    def answer(self) -> list[str]:
        """The tokens of the marked answer."""
        return tokenize(self.answer_text)

    @cached_property
    def reasoning(self) -> list[str]:
        """The tokens of the final message before its answer; all of its tokens if there is no answer."""
        return tokenize(self._split_final[0] if self.answer else self.final)

    @property
    def is_verdict(self) -> bool:
        """Whether the answer is a bare yes or no."""
        return len(self.answer) == 1 and self.answer[0] in VERDICTS

    @cached_property
    def sourced_share(self) -> float:
        """Share of the numbers in sums that the user or a tool had stated before; 1 without any sum."""
        sums = [call for call in self.calls if call.name == CALC]
        if not sums:
            return 1.0
        since: dict[str, int] = {}
        for place, (role, text) in enumerate(self.spoken):
            if role in {"user", "tool"}:
                for number in figures(text):
                    since.setdefault(number, place)
        known = [since.get(number, call.place) < call.place for call in sums for number in figures(call.arguments)]
        return sum(known) / len(known) if known else 1.0


def read(messages: Sequence[Message]) -> Transcript:
    """Read a dialogue in chat format. A result is matched to its call by id, or by order if it has no id."""
    roles = [_text(message.get("role")) for message in messages]
    spoken = tuple(zip(roles, (_text(message.get("content")) for message in messages), strict=True))
    made = [list(_calls(message, place)) for place, message in enumerate(messages)]
    return Transcript(
        spoken=spoken,
        calls=tuple(_answered([pair for own in made for pair in own], messages)),
        questions=count(zip(roles, ([call.name for _, call in own] for own in made), strict=True)).clarifications,
        final=spoken[-1][1] if spoken and spoken[-1][0] == "assistant" else "",
    )


def _calls(message: Message, place: int) -> Iterator[tuple[str, Call]]:
    """Yield the calls of one message, each after its id."""
    listed = message.get("tool_calls")
    for call in listed if isinstance(listed, Sequence) else ():
        call = call if isinstance(call, Mapping) else {}
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        yield _text(call.get("id")), Call(_text(function.get("name")), _text(function.get("arguments")), place)


def _answered(made: Sequence[tuple[str, Call]], messages: Sequence[Message]) -> Iterator[Call]:
    """Yield the calls with their results."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for number, (name, _) in enumerate(made):
        waiting[name].append(number)
    unnamed = deque(range(len(made)))
    results: dict[int, str] = {}
    for message in messages:
        if message.get("role") != "tool":
            continue
        name = _text(message.get("tool_call_id"))
        queue = waiting[name] if name else unnamed
        while queue and queue[0] in results:
            queue.popleft()
        if queue:
            results[queue.popleft()] = _text(message.get("content"))
    for number, (_, call) in enumerate(made):
        yield Call(call.name, call.arguments, call.place, results.get(number, ""))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_FIGURE = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?|\.[0-9]+")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
"""A JSON escape such as `\\u00d7`, whose digits are not a number."""


def figures(text: str) -> list[str]:
    """Return the numbers in `text` in reading order, without their signs, each in one canonical spelling.

    They are compared as texts and never converted, so that a number may have any length.

    Args:
        text: plain text, or the arguments of a call as JSON, well-formed or not.
    """
    plain = unicodedata.normalize("NFKC", _ESCAPE.sub(" ", text))
    return [_spelling(number) for number in _FIGURE.findall(plain)]


def _spelling(number: str) -> str:
    digits = number.replace(",", "")
    whole, point, decimals = digits.partition(".")
    decimals = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + decimals if decimals else "")
