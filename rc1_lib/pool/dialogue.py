"""Write one row: turn a planned question into a dialogue in chat format, with everything an auditor needs."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence

import orjson

from rc1_lib.answer_rules.message import MARK
from rc1_lib.config.data import Pool, Recipe
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.prompting import How, Posed, may_be_stated, pose
from rc1_lib.pool.teacher import CUE_RATE, Call, Performance, ask_chance, perform
from rc1_lib.pool.templates import Pack, Template
from rc1_lib.records import Bucket, Language, Message, Question, Row, RowSlot, Slot, Step, ToolCall, UserReplies
from rc1_lib.rows.chat import ANSWER_MARK, ARGUMENT_OF
from rc1_lib.task_specs import CLARIFICATION, is_right, task_spec

AMBIGUOUS = 0.5
"""Share of rows with missing information whose description fits several things; in the others the piece is gone. Half,
so that both kinds are learned."""
VAGUE = 0.15
"""Share of the complete rows that sound as if something were missing, so that sound alone tells little: a gap that does
not matter, or a description that fits one thing only."""


def kind_of(task: str, cue: bool) -> str:
    """Return the kind of template for a row; vague prompts have their own kind."""
    return CLARIFICATION if cue else task_spec(task).template_kind


def write_row(planned: PlannedRow, bucket: Bucket, pool: Pool, pack: Pack, take: int = 0) -> Row | None:
    """Pose the question with the recipe of `bucket`, play the scripted expert on it, and return the row.

    Every random choice depends only on the row, the recipe and the take, never on other rows.

    Args:
        planned: the question and the row's id, split and use.
        pool: the recipes, the limits and the scripted expert's habits.
        take: 0 for the row itself. Every other take keeps the exact prompt and draws the scripted expert's behaviour
            again. A finished dialogue cannot be played again and is the same in every take.

    Returns:
        The row, or None if the dialogue would exceed `pool.max_turns`.
    """
    if planned.question.dialogue is not None:
        return {**planned.question.dialogue, "id": planned.id, "split": planned.split, "use": planned.use}
    # Habits are drawn once per row, so that the choice among its variants cannot shift how often the expert asks.
    habits = random.Random(f"{pool.seed}/{planned.id}/{planned.use}")
    question, recipe = planned.question, pool.recipes[bucket]
    cue = habits.random() < CUE_RATE
    inclined = habits.random()
    how = _how(question, recipe, habits)
    rng = random.Random(f"{pool.seed}/{planned.id}/{planned.use}/{bucket}")
    template = rng.choice(pack.select(kind_of(question.task, cue), question.lang))
    posed = pose(question, template, bucket, recipe.overlap, how=how, cue=cue, rng=rng)
    if take:
        rng = random.Random(f"{pool.seed}/{planned.id}/{planned.use}/{bucket}/take-{take}")
        inclined = rng.random()
    asks = inclined < ask_chance(pool.clarify_rate, pool.teacher, cue=cue, needs=posed.needs)
    wanted = _question_to_user(question, template, posed, rng)
    performance = perform(posed, recipe, pool, asks=asks, wanted=wanted, rng=rng)
    if performance is None:
        return None
    reason = closing_reason(question.steps, question.support, question.lang) if performance.sound else ""
    messages = _messages(posed, template, performance, reason, rng)
    missing = posed.slot
    heard = wanted.result if asks else None
    solved, lucky = _verdict(posed, performance)
    return {
        "id": planned.id,
        "task": question.task,
        "split": planned.split,
        "source": question.source,
        "source_id": question.id,
        "use": planned.use,
        "lang": question.lang,
        "pack": pack.name,
        "template_id": template.id,
        "role": template.role,
        "style": template.style,
        "recipe": bucket,
        "messages": messages,
        "posed": {
            "ask": posed.question.ask,
            "quoted": list(posed.quoted),
            "listed": list(posed.listed),
            "reason": reason,
        },
        "question": question.ask,
        "support": list(posed.question.support),
        "passages": [{"title": page.title, "text": page.text} for page in posed.question.passages],
        "answer": question.answer,
        "aliases": list(question.aliases),
        "slot": row_slot(missing) if missing else None,
        "user_replies": replies_of(planned.id, template, question.lang, missing, heard),
        "needs_clarification": posed.needs,
        "cue": posed.cue,
        "asked": performance.asked,
        "final": performance.answer,
        "solved": solved,
        "lucky": lucky,
    }


def _verdict(posed: Posed, performance: Performance) -> tuple[bool, bool]:
    """Return whether the expert solved the row, and whether it was lucky: right without the missing information."""
    question = posed.question
    right = is_right(question.task, performance.answer, question.answer, question.aliases)
    obtained = not posed.needs or performance.asked > 0
    return right and obtained, right and not obtained


def _how(question: Question, recipe: Recipe, habits: random.Random) -> How:
    """Draw what is done to a question: whether a piece is missing and how, or whether it only sounds so."""
    withheld, ambiguous, vague, unique = (habits.random() for _ in range(4))
    if withheld < recipe.withhold:
        if question.twin and (ambiguous < AMBIGUOUS or not question.slot):
            return "ambiguous"
        if question.slot:
            return "gone"
    elif may_be_stated(question):
        return "stated"
    elif vague < VAGUE:
        if question.twin and (unique < 0.5 or not question.decoy):
            return "unique"
        if question.decoy:
            return "decoy"
    return "complete"


def row_slot(slot: Slot) -> RowSlot:
    """Return a slot as rows record it."""
    return {"where": slot.where, "value": slot.value, "vague": slot.vague, "wanted": slot.wanted, "way": slot.way}


def _question_to_user(question: Question, template: Template, posed: Posed, rng: random.Random) -> Call:
    """Return the expert's question to the user, with a reply: the slot's value, or that nothing is missing."""
    about = posed.slot or (question.twin.slot if posed.how == "unique" and question.twin else question.slot)
    unknown = "你具体想问的是什么" if question.lang == "zh" else "what exactly you mean"
    text = rng.choice(template.ask).format(wanted=about.wanted if about else unknown)
    if posed.slot:
        return Call("ask_user", text, rng.choice(template.reply).format(value=posed.slot.value))
    return Call("ask_user", text, rng.choice(template.nothing_missing))


def _messages(
    posed: Posed, template: Template, performance: Performance, reason: str, rng: random.Random
) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": posed.system}, {"role": "user", "content": posed.user}]
    number = 0
    for turn in performance.turns:
        ids = [f"call_{number + offset}" for offset in range(len(turn))]
        number += len(turn)
        messages.append(
            {
                "role": "assistant",
                "content": _accompanying_words(turn[0], template, rng),
                "tool_calls": _tool_calls(turn, ids),
            }
        )
        for call_id, call in zip(ids, turn, strict=True):
            messages.append({"role": "tool", "tool_call_id": call_id, "name": call.tool, "content": call.result})
    closing = _final(posed.question.lang, template, performance.answer, reason, rng)
    messages.append({"role": "assistant", "content": closing})
    return messages


def _accompanying_words(call: Call, template: Template, rng: random.Random) -> str:
    """Draw the text next to a call; a clarifying question needs none."""
    if call.tool == "ask_user":
        return ""
    return rng.choice(template.steps[call.tool]).format(**{ARGUMENT_OF[call.tool]: call.argument})


def _tool_calls(turn: Sequence[Call], ids: Sequence[str]) -> list[ToolCall]:
    return [
        {
            "id": call_id,
            "type": "function",
            "function": {
                "name": call.tool,
                "arguments": orjson.dumps({ARGUMENT_OF[call.tool]: call.argument}).decode(),
            },
        }
        for call_id, call in zip(ids, turn, strict=True)
    ]


def _final(lang: str, template: Template, answer: str, reason: str, rng: random.Random) -> str:
    phrases = [phrase for phrase in template.final if bool(reason) or "{reason}" not in phrase]
    words = rng.choice(phrases).format(reason=reason) if phrases else ""
    return f"{words} {ANSWER_MARK[lang]}{answer}".strip()


def closing_reason(steps: Sequence[Step], support: Sequence[str], lang: str) -> str:
    """Return the reason that a sound dialogue may close with: its sums, or the last supporting sentence.

    Empty if that sentence has an answer mark, since the message would then give two answers.
    """
    sums = [f"{step.argument} = {step.result}" for step in steps if step.tool == "calc"]
    if sums:
        return ("，" if lang == "zh" else ", ").join(sums)
    reason = support[-1].rstrip(".。 ") if support else ""
    return "" if re.search(MARK, reason) else reason


# What a row's user replies if asked, recorded in the row so that the environment needs nothing else.

UNSURE: dict[Language, str] = {"en": "I do not know that.", "zh": "这个我不知道。"}
"""The reply when something is missing but the question asks for something else."""


def replies_of(row_id: str, template: Template, lang: Language, missing: Slot | None, heard: str | None) -> UserReplies:
    """Return both replies of a row's user, worded with the row's template.

    Args:
        row_id: picks the phrase if the dialogue contains none. It is hashed rather than drawn, so that whether the
            expert asks does not shift other random choices of the row.
        missing: the information that only the user has; None if nothing is missing.
        heard: what the user replies in the row's own dialogue, repeated whenever asked; None if nobody asks there.
    """
    if missing is None:
        return {"gives": None, "otherwise": heard or _pick(template.nothing_missing, row_id)}
    return {"gives": heard or _pick(template.reply, row_id).format(value=missing.value), "otherwise": UNSURE[lang]}


def _pick(phrases: Sequence[str], row_id: str) -> str:
    return phrases[int.from_bytes(hashlib.sha256(row_id.encode()).digest()[:4], "big") % len(phrases)]
