"""The dimensions by rule: two simple rules that score a dialogue from its messages alone.

They see no gold answer, no label of what was missing and no outcome, and do not follow arguments. The task's answer
rule decides whether the answer is right, and training pays for that first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from rc1_lib.answer_rules.verdicts import verdict_in
from rc1_lib.errors import ConfigError
from rc1_lib.records import Message, Rule
from rc1_lib.rows.chat import ASK, MESSAGES, spread_messages
from rc1_lib.rows.transcript import CALC, Call, Transcript, figures, read
from rc1_lib.text.tokens import tokenize

LONGEST_ANSWER = 10
"""Most tokens of a definite answer; a longer one is an essay or a list of guesses."""
HALF = 0.5
"""The score if a rule cannot decide: a yes or no without a comparison, or a dialogue without questions."""
_YES, _NO = frozenset({"yes", "true", "是", "对"}), frozenset({"no", "false", "否", "不"})


def add_rules(frame: pl.DataFrame, names: Iterable[Rule]) -> pl.DataFrame:
    """Add one Float64 column in [0, 1] for each rule named; null if `messages` is null.

    Raises:
        ConfigError: for a rule that does not exist.
        RowError: when there are no chat messages to read.
    """
    wanted = list(names)
    unknown = sorted(set(wanted) - set(RULES))
    if unknown:
        raise ConfigError(f"there is no rule {', '.join(unknown)}; the rules are {', '.join(RULES)}")
    spread_messages(frame.head(0))  # rejects what is not a chat
    transcripts = [None if messages is None else read(messages) for messages in frame["messages"].to_list()]
    return frame.with_columns(
        pl.Series(name, [None if found is None else RULES[name](found) for found in transcripts], dtype=pl.Float64)
        for name in wanted
    )


def obtained(dialogue: Transcript) -> float:
    """1 if the one definite answer was obtained from a tool or the user, else 0.

    A number or a name must occur in the result of a tool or a reply; a page opened by the answer itself does not count.
    If nothing was called, or any sum is a comparison, the user's message may contain it. A yes or no must agree
    with the last comparison; without one it counts half. A sum with an invented number obtains nothing.
    """
    answer = dialogue.answer
    if not answer or len(answer) > LONGEST_ANSWER or dialogue.sourced_share < 1:
        return 0.0
    results = [_verdict(tokenize(call.result)) for call in dialogue.calls if call.name == CALC]
    compared = [verdict for verdict in results if verdict]
    if (said := verdict_in(dialogue.answer_text)) is not None:
        return HALF if not compared else float(said == (compared[-1] == "yes"))
    sources = [call.result for call in dialogue.calls if call.result and tokenize(call.said) != answer]
    if not dialogue.calls or compared:
        sources.append(dialogue.asked)
    if numbers := set(figures(dialogue.answer_text)):
        return float(any(numbers <= set(figures(text)) for text in sources))
    return float(any(set(answer) <= set(tokenize(text)) for text in sources))


def reply_used(dialogue: Transcript) -> float:
    """Share of the questions to the user whose reply was used; one half without questions.

    Used means that a new word or number of the reply occurs in a later call or in the answer.
    """
    asked = [call for call in dialogue.calls if call.name == ASK]
    return sum(_is_used(dialogue, call) for call in asked) / len(asked) if asked else HALF


def _is_used(dialogue: Transcript, question: Call) -> bool:
    calls = dialogue.calls
    before = {word for call in calls if call.place <= question.place for word in tokenize(call.said)}
    later = {word for call in calls if call.place > question.place for word in tokenize(call.said)}
    return not later.union(dialogue.answer).isdisjoint(set(tokenize(question.result)) - before)


def _verdict(words: list[str]) -> str:
    """Return `yes` or `no` if that is the first word, else an empty text."""
    first = words[0] if words else ""
    return "yes" if first in _YES else "no" if first in _NO else ""


RULES: dict[Rule, Callable[[Transcript], float]] = {"obtained": obtained, "reply_used": reply_used}
"""Every rule by its name."""


def messages_column(dialogues: Sequence[Sequence[Message]]) -> pl.Series:
    """Return the dialogues as a column of chat messages, for the rules."""
    return pl.Series("messages", [list(map(_message, messages)) for messages in dialogues], dtype=MESSAGES)


def _message(message: Message) -> dict[str, Any]:
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return {
        "role": message["role"],
        "content": message.get("content"),
        "name": message.get("name"),
        "tool_calls": [{"function": {key: call["function"][key] for key in ("name", "arguments")}} for call in calls],
    }
