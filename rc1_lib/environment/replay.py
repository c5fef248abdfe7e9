"""Replay a row's dialogue in its environment and report every difference from the row."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rc1_lib.answer_rules.golds import number
from rc1_lib.environment.outcome import EpisodeStatus, outcome_of
from rc1_lib.environment.turn import CheckedCall, Limits, Malformed, read_message
from rc1_lib.environment.world import World
from rc1_lib.numbers.calculator import CalculatorError, calculate
from rc1_lib.records import Message, Row, RowSlot, UserReplies
from rc1_lib.rows.chat import ASK, counts_of
from rc1_lib.rows.inconsistency import Inconsistency, Kind
from rc1_lib.rows.playable import is_playable
from rc1_lib.task_specs import answer_in

_MAX = sys.maxsize
_NO_LIMITS = Limits(
    turns=_MAX, tokens=_MAX, tool_errors=_MAX, malformed=0, calls=_MAX, turn_chars=_MAX, argument_chars=_MAX
)
"""Another gate limits the length of dialogues. Malformed turns are not allowed at all."""
_UNRECORDED = "(not recorded)"


def inconsistencies(row: Row) -> Iterator[Inconsistency]:
    """Yield what a replay contradicts in `row`: the first difference in its dialogue, or all in its outcome.

    Without `user_replies` the user's reply cannot be known, so the recorded one is accepted.

    Args:
        row: a row that `check_rows` has accepted, as read from JSON lines or from a frame.
    """
    world = World(_with_replies(row))
    in_dialogue = next(_in_dialogue(row, world), None)
    if row["needs_clarification"] and not row.get("slot"):
        world.obtained = world.asked > 0  # it is unknown what is missing, so any question counts
    if in_dialogue:
        yield in_dialogue
    else:
        yield from _in_outcome(row, world)
    yield from _in_reason(row)
    yield from _in_replies(row)


def _with_replies(row: Row) -> Row:
    if is_playable(row):
        return row
    slot: RowSlot = {"where": "ask", "value": _UNRECORDED, "vague": _UNRECORDED, "wanted": _UNRECORDED}
    replies: UserReplies = {"gives": _UNRECORDED, "otherwise": _UNRECORDED}
    return {**row, "slot": row.get("slot") or slot, "user_replies": replies}


def _in_dialogue(row: Row, world: World) -> Iterator[Inconsistency]:
    messages, place = row["messages"], len(world.prompt)
    for at, opening in enumerate(messages[:place]):
        if opening["role"] == "tool" or opening.get("tool_calls"):
            yield Inconsistency(
                Kind.TURN, f"messages[{at}]", "a call or its result", "words before the assistant's first"
            )
    answered = False
    while place < len(messages):
        here, message = f"messages[{place}]", messages[place]
        turn = read_message(message, _NO_LIMITS)
        if answered or message["role"] != "assistant":
            expected = "the end: the answer was given" if answered else "a turn of the assistant"
            yield Inconsistency(Kind.TURN, here, f"a message of role {message['role']}", expected)
        if isinstance(turn, Malformed):
            yield Inconsistency(Kind.TURN, here, f"a turn that is malformed: {turn.fault}", turn.sentence)
            return
        held = messages[place + 1 : place + 1 + len(turn.calls)]
        yield from _in_results(row, world, turn.calls, held, place)
        answered = not turn.calls
        place += 1 + len(turn.calls)
    if not answered:
        yield Inconsistency(
            Kind.TURN, f"messages[{len(messages) - 1}]", "the end", "an answer in a message without a call"
        )


def _in_results(
    row: Row, world: World, calls: Sequence[CheckedCall], held: Sequence[Message], place: int
) -> Iterator[Inconsistency]:
    """Yield the results in `held` that differ from what the calls of `messages[place]` return."""
    ids = [entry.get("id") for entry in row["messages"][place].get("tool_calls") or ()]
    for offset, (call, id_) in enumerate(zip(calls, ids, strict=True)):
        here, true = f"messages[{place + 1 + offset}]", world.run(call).text
        if offset >= len(held) or held[offset]["role"] != "tool":
            found = f"a message of role {held[offset]['role']}" if offset < len(held) else "the end"
            yield Inconsistency(Kind.TURN, here, found, f"the result of {call.tool}")
            return
        message = held[offset]
        if message.get("tool_call_id") != id_:
            yield Inconsistency(Kind.TURN, f"{here}.tool_call_id", str(message.get("tool_call_id")), str(id_))
        if message.get("name") not in (None, call.tool):
            yield Inconsistency(Kind.TURN, f"{here}.name", str(message.get("name")), call.tool)
        unknowable = call.tool == ASK and not is_playable(row)
        if message["content"] != true and not unknowable:
            yield Inconsistency(Kind.RESULT, f"{here}.content", str(message["content"]), true)


def _in_outcome(row: Row, world: World) -> Iterator[Inconsistency]:
    messages = row["messages"]
    answer, turns = answer_in(row["task"], messages[-1]["content"] or ""), counts_of(messages).turns
    outcome = outcome_of(world, EpisodeStatus.ANSWERED, answer, turns=turns, malformed=0, tokens=0)
    true = {"final": outcome.answer, "solved": outcome.solved, "lucky": outcome.lucky, "asked": outcome.asked}
    for name, value in true.items():
        found = row[name]  # type: ignore[literal-required]
        if found != value:
            yield Inconsistency(Kind.OUTCOME, name, str(found), str(value))


def sums(row: Row) -> list[tuple[str, str]]:
    """Return expression and result of every sum in the closing reason; empty if the reason is a sentence.

    So is a legend, such as `1 = Monday`: a sum is more than a number.
    """
    reason = row["posed"]["reason"] or ""
    parts = [part.rpartition(" = ") for part in reason.split("，" if row["lang"] == "zh" else ", ")]
    are_sums = all(equals and number(sum_) is None for sum_, equals, _ in parts)
    return [(sum_, result) for sum_, _, result in parts] if are_sums else []


def _in_reason(row: Row) -> Iterator[Inconsistency]:
    for expression, result in sums(row):
        try:
            value = calculate(expression)
        except CalculatorError:
            return  # text that only looks like a sum
        if value != result:
            yield Inconsistency(Kind.RESULT, "posed.reason", f"{expression} = {result}", f"{expression} = {value}")


def _in_replies(row: Row) -> Iterator[Inconsistency]:
    slot, replies = row.get("slot"), row.get("user_replies")
    gives = replies["gives"] if replies else None
    if slot and gives and slot["value"] not in gives:
        yield Inconsistency(Kind.RESULT, "user_replies.gives", gives, f"a reply that names '{slot['value']}'")
