"""The scripted expert ("teacher"): which calls it makes in which turn, when it asks, and what it answers.

Its habits are deliberately imperfect. It asks because the prompt *sounds* vague, not because something is missing, so
that its demonstrations do not teach what training is meant to teach: when to ask.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rc1_lib.config.data import Pool, Recipe, Teacher
from rc1_lib.numbers.calculator import CalculatorError, calculate
from rc1_lib.pool.prompting import Posed
from rc1_lib.records import Question, Step, Tool
from rc1_lib.task_specs import task_spec

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
CUE_RATE = 0.35
"""Share of prompts worded vaguely, whether or not anything is missing: a misleading cue."""
MAX_TOOL_HOPS = 8
"""Most calls of wiki and calc in one dialogue, as many as the gate `difficulty` allows; needless ones are left out to
stay within it."""
_REPEAT_RATE = 0.08
"""Chance that the scripted expert repeats a call."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call and what it returned."""

    tool: Tool
    argument: str
    result: str


@dataclass(frozen=True, slots=True)
class Performance:
    """What the scripted expert did: turns of calls, then the final answer.

    `sound` is False if it skipped a needed call or went on without a missing slot, so that its answer is a guess.
    """

    turns: tuple[tuple[Call, ...], ...]
    answer: str
    asked: int
    sound: bool


def ask_chance(clarify_rate: float, teacher: Teacher, *, cue: bool, needs: bool) -> float:
    """Return the chance of asking: `clarify_rate` on average over vague and plain prompts, raised by the habits.

    Args:
        clarify_rate: the average over all prompts where nothing is missing.
        teacher: the factors by which a vague prompt and missing information raise the chance.
        cue: whether the prompt is vague.
        needs: whether information is missing.
    """
    plain = clarify_rate / (CUE_RATE * teacher.cue_pull + 1.0 - CUE_RATE)
    return min(1.0, plain * (teacher.cue_pull if cue else 1.0) * (teacher.need_pull if needs else 1.0))


def perform(
    posed: Posed, recipe: Recipe, pool: Pool, *, asks: bool, wanted: Call, rng: random.Random
) -> Performance | None:
    """Play the scripted expert on a posed question.

    Args:
        posed: the question as put to the assistant.
        recipe: how many distractor pages the expert reads.
        pool: the turn limit, the tools and the expert's habits.
        asks: whether the expert asks the user.
        wanted: the `ask_user` call with the user's reply, used when `asks`.
        rng: this row's own generator.

    Returns:
        What it did, or None if the needed turns exceed `pool.max_turns` even with parallel calls.
    """
    blind = posed.needs and not asks
    needed, outcome = _needed(posed, pool, blind, rng)
    skipped = bool(needed) and not blind and rng.random() < pool.teacher.skip_tool_rate
    if skipped:
        needed.pop(rng.randrange(len(needed)))
    extended = _with_detours(needed, posed, recipe, pool, rng)
    turns = None
    for steps in (extended, needed):
        if turns is None and (len(steps) <= MAX_TOOL_HOPS or steps is needed):
            calls = [_run(step, posed) for step in steps]
            if asks:
                calls.insert(_asking_place(posed, calls), wanted)
            turns = _parallel_calls(calls, pool.max_turns - 1, posed.unlisted)
    if turns is None and blind:  # what it supposes may take more turns than what is so
        needed, outcome = [step for step in needed if step.tool == "wiki"], _guess(posed.question, rng)
        turns = _parallel_calls([_run(step, posed) for step in needed], pool.max_turns - 1, posed.unlisted)
    if turns is None:
        return None
    sound = not blind and not skipped
    answer = outcome if not skipped else _guess(posed.question, rng)
    return Performance(tuple(turns), answer, int(asks), sound)


def fits(question: Question, pool: Pool) -> bool:
    """Return whether the solution and one clarifying question fit into the turn limit if all evidence is quoted."""
    steps = [step for step in question.steps if step.tool in pool.tools]
    if len(steps) > MAX_TOOL_HOPS:
        return False
    hidden = question.slot.hides if question.slot else ()
    calls = [
        Call(step.tool, step.argument, step.result) for step in steps if step.tool == "calc" or step.argument in hidden
    ]
    return _parallel_calls(calls, pool.max_turns - 2, hidden) is not None


def _guess(question: Question, rng: random.Random) -> str:
    """Return an answer guessed without the evidence."""
    return task_spec(question.task).guess(question, rng)


def _needed(posed: Posed, pool: Pool, blind: bool, rng: random.Random) -> tuple[list[Step], str]:
    """Return the steps that the expert considers needed, and the answer that they lead to."""
    steps, answer = posed.question.steps, posed.question.answer
    if blind and posed.how == "ambiguous" and posed.question.twin and rng.random() < 0.5:
        steps, answer = posed.question.twin.steps, posed.question.twin.answer
    unlisted = posed.unlisted
    wanted = [
        step
        for step in steps
        if step.tool in pool.tools and (step.tool != "wiki" or not posed.complete or step.argument in unlisted)
    ]
    slot = posed.slot
    if not blind or slot is None or slot.way == "ambiguous":
        return wanted, answer
    if slot.where == "story" and not unlisted:
        supposed = suppose(wanted, answer, slot.value, rng)
        return supposed or ([step for step in wanted if step.tool == "wiki"], _guess(posed.question, rng))
    # The expert cannot know the page that the missing name has, so it reads another of the listed pages instead.
    spare = [title for title in posed.listed if title not in (slot.value, *unlisted)]
    read = [step for step in wanted if step.tool == "wiki" and step.argument not in (slot.value, *unlisted)]
    if spare and len(read) < len(wanted):
        read.append(Step("wiki", rng.choice(spare), ""))
    return read, _guess(posed.question, rng)


def suppose(steps: Sequence[Step], answer: str, value: str, rng: random.Random) -> tuple[list[Step], str] | None:
    """Redo the sums with an assumed number instead of the missing `value`.

    Returns:
        The steps and the answer they lead to, or None if no sum uses the number or a sum has no result.
    """
    number, wanted = _as_number(value), _as_number(answer)
    verdict = answer in ("yes", "no")
    if number is None or (wanted is None and not verdict):
        return None
    supposed = f"{max(1, round(number * rng.choice([0.5, 1.5, 2.0])) + rng.choice([0, 1])):d}"
    known = {number: supposed}
    redone: list[Step] = []
    for step in steps:
        if step.tool == "calc":
            expression = _NUMBER.sub(lambda found: known.get(float(found.group()), found.group()), step.argument)
            try:
                result = calculate(expression)
            except CalculatorError:
                return None
            before = _as_number(step.result)
            if before is not None and before != _as_number(result):
                known[before] = result
            step = Step("calc", expression, result)
        redone.append(step)
    outcome = redone[-1].result if verdict and redone else known.get(wanted) if wanted is not None else None
    return (redone, outcome) if outcome is not None else None


def _as_number(text: str) -> float | None:
    found = _NUMBER.search(text.replace(",", ""))
    return float(found.group()) if found else None


def _with_detours(needed: list[Step], posed: Posed, recipe: Recipe, pool: Pool, rng: random.Random) -> list[Step]:
    """Return the needed steps with distractor pages among the look-ups and an occasional repeated call."""
    taken = {step.argument for step in posed.question.steps if step.tool == "wiki"}
    spare = [title for title in posed.listed if title not in taken]
    searched = int(posed.how == "unique")  # which page fits a description shows only after reading another one
    most = max(searched, rng.randint(*recipe.detours))
    detours = rng.sample(spare, min(len(spare), most)) if "wiki" in pool.tools else []
    steps = list(needed)
    lookups = sum(step.tool == "wiki" and step.argument not in posed.unlisted for step in steps)
    for title in detours:
        steps.insert(0 if searched else rng.randint(0, lookups), Step("wiki", title, ""))
        lookups += 1
    if steps and rng.random() < _REPEAT_RATE:
        place = rng.randrange(len(steps))
        steps.insert(place, steps[place])
    return steps


def _run(step: Step, posed: Posed) -> Call:
    if step.tool == "calc":
        return Call("calc", step.argument, step.result)
    text = next(passage.text for passage in posed.question.passages if passage.title == step.argument)
    return Call("wiki", step.argument, text)


def _parallel_calls(calls: Sequence[Call], room: int, unlisted: Sequence[str] = ()) -> list[tuple[Call, ...]] | None:
    """Spread calls over at most `room` turns, merging neighbours that do not need each other's result.

    Args:
        calls: the calls in order.
        room: most turns.
        unlisted: titles that the prompt does not list, so that only an earlier result tells them.

    Returns:
        The turns, or None if the calls do not fit.
    """
    turns: list[tuple[Call, ...]] = [(call,) for call in calls]
    place = 0
    while len(turns) > room:
        if place + 1 >= len(turns):
            return None
        if _independent(turns[place], turns[place + 1], unlisted):
            turns[place : place + 2] = [turns[place] + turns[place + 1]]
        else:
            place += 1
    return turns


def _independent(first: Sequence[Call], second: Sequence[Call], unlisted: Sequence[str]) -> bool:
    """Return whether `second` can be called in the same turn as `first`.

    A question to the user is a turn of its own. Look-ups of listed pages never wait. A sum waits for pages and for the
    results it contains.
    """
    if any(call.tool == "ask_user" or call.argument in unlisted for call in (*first, *second)):
        return False
    if all(call.tool == "wiki" for call in second):
        return True
    if any(call.tool == "wiki" for call in first):
        return False
    return not any(call.result in other.argument for call in first for other in second)


def _asking_place(posed: Posed, calls: Sequence[Call]) -> int:
    """Return before which call to ask: a gap in the question shows at once, one on a page only after reading it."""
    slot = posed.slot or posed.question.slot
    if posed.complete or slot is None or slot.where == "ask" or posed.how in ("unique", "ambiguous"):
        return 0
    reads = [place for place, call in enumerate(calls) if call.tool == "wiki"]
    if posed.slot:
        return next((place + 1 for place in reads if slot.vague in calls[place].result), 0)
    return 1 if reads[:1] == [0] else 0
