"""Whether training learns what sampling sees: a base's chat template, its tokens and its end of turn, before it is run.

Two dialogues are rendered by the base's own template and tokenised by its own tokenizer. What training would read and
learn has to be these tokens and no others, and everybody who generates has to stop where a turn was learned to end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.markers import THINK, THINK_END
from rc1_lib.errors import ConfigError
from rc1_lib.records import Message
from rc1_lib.training.chat_format import ChatFormat, turn_text
from rc1_lib.training.chat_template import DATE
from rc1_lib.training.tool_schemas import TOOLS
from rc1_lib.training.updates.batch import Demonstration, collate_demonstrations
from rc1_lib.training.warm_start import learned_batch

_OTHER_DAY = "a day of another run"


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is looked at.

    Attributes:
        form: of the base's tokenizer, as the run uses it.
        config: of the run.
        ends: tokens at which whoever generates from the base stops.
    """

    form: ChatFormat
    config: RunConfig
    ends: frozenset[int]

    def refusal(self, what: str) -> ConfigError:
        """The sentence that a broken contract ends with."""
        return ConfigError(f"base_model: '{self.form.tokenizer.name_or_path}' {what}")


def check_chat_contract(form: ChatFormat, config: RunConfig, ends: frozenset[int]) -> str:
    """Refuse a base whose demonstrations, prompts and ends of turns are not what sampling would see.

    Args:
        form: of the base's tokenizer, as the run uses it.
        config: of the run.
        ends: tokens at which whoever generates from the base stops.

    Returns:
        What is worth knowing about the template, in words.

    Raises:
        ConfigError: what is broken, and what to set.
    """
    subject = _Subject(form, config, ends)
    return "; ".join(filter(None, (check(subject) for check in CHECKS.values())))


def _tokens(subject: _Subject) -> str:
    """What training reads is, token by token, what the tokenizer makes of the text that the template writes."""
    form = subject.form
    for messages in _DIALOGUES:
        ids, _ = form.dialogue_ids(messages)
        expected = [token for part, _ in _expected(form, messages) for token in part]
        if ids != expected:
            at = _first_difference(ids, expected)
            raise subject.refusal(
                f"has a tokenizer that makes other tokens of a rendered dialogue than of its parts: at token {at} "
                f"training would read {form.decode(ids[at : at + 4])!r} as {ids[at : at + 4]}, a server "
                f"{expected[at : at + 4]}; take a base with a byte-level tokenizer"
            )
        sampled = _as_sampled(form, messages)
        if ids != sampled:
            raise subject.refusal("reads a demonstration as other tokens than the same dialogue when it is sampled")
    return ""


def _mask(subject: _Subject) -> str:
    """What is learned is the assistant's turns with their ends, nothing that anybody else said, and no padding."""
    form = subject.form
    for messages in _DIALOGUES:
        _, own = form.dialogue_ids(messages)
        expected = [mine for part, mine in _expected(form, messages) for _ in part]
        if own != expected:
            raise subject.refusal(
                f"has a mask that is wrong from token {_first_difference(own, expected)} on: {sum(own)} tokens of a "
                f"dialogue would be learned, {sum(expected)} are the assistant's own"
            )
    return ""


def _padding(subject: _Subject) -> str:
    """The batches that are learned from hold these tokens and no others as labels, whatever fills them up."""
    form = subject.form
    encoded = [form.dialogue_ids(messages) for messages in _DIALOGUES]
    learned = sorted([token for token, mine in zip(ids, own, strict=True) if mine] for ids, own in encoded)
    dialogues = [Demonstration(str(number), ids, own) for number, (ids, own) in enumerate(encoded)]
    batch, first = collate_demonstrations(dialogues, form.pad_id), learned_batch(dialogues, form.pad_id)
    in_a_run = sorted(ids[own].tolist() for ids, own in zip(batch.ids, batch.action_mask, strict=True))
    in_a_warm_start = sorted(ids[own].tolist() for ids, own in zip(first["input_ids"], first["own"], strict=True))
    for name, found in (("a run", in_a_run), ("the warm start", in_a_warm_start)):
        if found != learned:
            counts = f"{sum(map(len, found))} tokens of {len(encoded)} dialogues, expected {sum(map(len, learned))}"
            raise subject.refusal(f"has other labels than its turns in {name}: {counts}")
    return "fills up batches with its end-of-turn token, which is learned only where a turn ends" * (
        form.pad_id == form.end_id
    )


def _tools(subject: _Subject) -> str:
    """Where the tools are to be described, the prompt names each, with what it is for and how it is called."""
    described = subject.form.template.described
    if not subject.config.training.describe_tools:
        return "tools are not described (training.describe_tools: false): the base has to know them"
    text = subject.form.decode(subject.form.prompt_ids(_DIALOGUES[0][:2]))
    functions = [tool["function"] for tool in TOOLS]
    missing = [one["name"] for one in functions if f'"{one["name"]}"' not in text or one["description"] not in text]
    if missing:
        raise subject.refusal(
            f"reads a prompt that does not describe {', '.join(missing)}, although training.describe_tools is true; "
            f"take another base, or write false where it knows the tools by training"
        )
    if described == "template":
        return "the template describes the tools"
    return (
        "tools are described by RC1 at the beginning of the system text: the template does not describe them, or in "
        "another form of calls than the environment reads"
    )


def _roles(subject: _Subject) -> str:
    """The model reads what system, user and tools say, once."""
    form, lacking = subject.form, subject.form.template.manner
    for messages in _DIALOGUES:
        text = form.decode(form.dialogue_ids(messages)[0])
        for message in messages:
            times = text.count(str(message["content"]))
            if message["role"] != "assistant" and times != 1:
                raise subject.refusal(
                    f"reads what the role '{message['role']}' says {times} times, expected once; take another base, or "
                    f"another chat template"
                )
    said = [
        "the system text is in the first user's message, as the template has no role for it" * lacking.system,
        "what tools return is in a user's message, as the template has no role for it or alters it" * lacking.tools,
    ]
    return "; ".join(filter(None, said))


def _thoughts(subject: _Subject) -> str:
    """No demonstrated word is in an open block of thoughts; the template reads `enable_thinking` if it is set."""
    form, wanted = subject.form, subject.config.training.enable_thinking
    if wanted is not None and not form.template.reads("enable_thinking"):
        raise subject.refusal(
            f"has a chat template that does not read enable_thinking, and training.enable_thinking is "
            f"{str(wanted).lower()}; write null"
        )
    for messages in _DIALOGUES:
        ids, own = form.dialogue_ids(messages)
        for end in range(1, len(ids) + 1):
            if not own[end - 1] or own[end : end + 1] == [True]:
                continue  # not where a turn ends
            text = form.decode(ids[:end])
            if text.rfind(THINK) > text.rfind(THINK_END):
                raise subject.refusal(
                    "opens thoughts in its generation prompt, and a demonstration would be in them unclosed; set "
                    "training.enable_thinking: false"
                )
    opens, most = form.opens_thoughts, subject.config.training.rollout.thought_tokens
    if most is not None and form.thoughts is None:
        raise subject.refusal(
            f"has no single token {THINK_END}, so the end of thoughts is not seen, and training.rollout.thought_tokens "
            f"is {most}; write null"
        )
    if opens and wanted is False:
        raise subject.refusal(
            "opens thoughts in its generation prompt, although training.enable_thinking is false; write null, and a "
            "rollout_len in which thoughts and answer have room, or take a base that answers without thoughts"
        )
    room = f"count towards rollout_len ({subject.config.rollout_len} tokens a turn)"
    if most is not None:
        room = (
            f"may have {most} tokens (training.rollout.thought_tokens), and what follows {subject.config.rollout_len}"
        )
    return f"thinks before it answers: demonstrations close its thoughts at once, sampled ones {room}" * opens


def _date(subject: _Subject) -> str:
    """A prompt is the same on every day."""
    template, roles = subject.form.template, ("system", "user")
    if template.on_day(_OTHER_DAY, roles) != template.prompt(roles):
        raise subject.refusal(
            "has a chat template that prints today's date, so that a run which is resumed after midnight would be "
            "another one; write a fixed date into the template"
        )
    return f"the template prints a date, which is {DATE:%d %B %Y} in every run" * template.dated


def _end(subject: _Subject) -> str:
    """Whoever generates from the base or an export stops where training learns that a turn ends, and only there."""
    form = subject.form
    end = f"'{form.template.end}' ({form.end_id})"
    if form.end_id not in subject.ends:
        stops = ", ".join(map(str, sorted(subject.ends))) or "no token"
        raise subject.refusal(
            f"ends a turn with {end} by its chat template, but its generation_config.json (without one, its "
            f"config.json) stops at {stops}: what is exported would talk on; set eos_token_id there to "
            f"{sorted({*subject.ends, form.end_id})}"
        )
    said = {token for messages in _DIALOGUES for token, own in zip(*form.dialogue_ids(messages), strict=True) if own}
    if within := sorted((said & subject.ends) - {form.end_id}):
        raise subject.refusal(
            f"would stop within a turn: its generation_config.json (without one, its config.json) stops at {within[0]} "
            f"({form.decode(within[:1])!r}), which the assistant says before its turn ends; take it out of "
            f"eos_token_id there"
        )
    if form.tokenizer.eos_token_id == form.end_id:
        return ""
    return f"a turn ends with {end}, which is not the tokenizer's eos_token '{form.tokenizer.eos_token}'"


def _forged(subject: _Subject) -> str:
    """No content becomes a special token, whatever it holds."""
    form = subject.form
    marks = {number: token.content for number, token in form.tokenizer.added_tokens_decoder.items()}
    marks = {number: mark for number, mark in marks.items() if mark.strip()}
    everything = " ".join(marks.values())

    def found(content: str) -> Counter[int]:
        opening: list[Message] = [{"role": "system", "content": content}, {"role": "user", "content": content}]
        told: list[Message] = [{"role": "tool", "tool_call_id": "call_0", "name": "wiki", "content": content}]
        return Counter(token for token in (*form.prompt_ids(opening), *form.observation_ids(told)) if token in marks)

    forged = found(everything) - found("x")
    if forged:
        names = ", ".join(sorted(marks[number] for number in forged)[:4])
        raise subject.refusal(f"reads {names} inside what a user or a tool says as its own special token")
    return ""


CHECKS: Mapping[str, Callable[[_Subject], str]] = MappingProxyType(
    {
        "tokens": _tokens,
        "mask": _mask,
        "padding": _padding,
        "tools": _tools,
        "roles": _roles,
        "thoughts": _thoughts,
        "date": _date,
        "end of turn": _end,
        "forged marks": _forged,
    }
)
"""What is looked at -> how: each returns what is worth knowing, or raises what is broken."""


def _expected(form: ChatFormat, messages: Sequence[Message]) -> list[tuple[list[int], bool]]:
    """The tokens that the tokenizer makes of a dialogue's text, part by part, and whether they are the assistant's."""

    def ids_of(text: str) -> list[int]:
        return list(form.tokenizer(text, add_special_tokens=False)["input_ids"])

    expected, read = [], ""
    for text, own in form.template.pieces(messages, turn_text):
        before, both = ids_of(read), ids_of(read + text)
        # Where the tokenizer would join two parts, the model writes the second one by itself.
        ids = both[len(before) :] if both[: len(before)] == before else ids_of(text)
        expected.append((ids, own))
        read += text
    return expected


def _first_difference(found: Sequence[object], expected: Sequence[object]) -> int:
    pairs = zip(found, expected, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(found), len(expected)))


def _as_sampled(form: ChatFormat, messages: Sequence[Message]) -> list[int]:
    """The same dialogue as a rollout puts it together, if the model says what was demonstrated."""
    first = next(number for number, message in enumerate(messages) if message["role"] == "assistant")
    ids, told = form.prompt_ids(messages[:first]), list[Message]()
    for message in messages[first:]:
        if message["role"] != "assistant":
            told.append(message)
            continue
        ids += [*(form.observation_ids(told) if told else []), *form.turn_ids(message)]
        told = []
    return ids


def _call(number: int, tool: str, arguments: str) -> Any:
    return {"id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}


_DIALOGUES: tuple[tuple[Message, ...], ...] = (
    (
        {"role": "system", "content": "Answer the question.\nAsk when something is missing."},
        {"role": "user", "content": 'How long is "The Lake, 2nd ed."?'},
        {
            "role": "assistant",
            "content": "I look it up.",
            "tool_calls": [_call(0, "wiki", '{"title":"The Lake"}'), _call(1, "calc", '{"expression":"12*3.5"}')],
        },
        {"role": "tool", "tool_call_id": "call_0", "name": "wiki", "content": 'It has 120 pages.\n"Calm."'},
        {"role": "tool", "tool_call_id": "call_1", "name": "calc", "content": "42.0"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [_call(2, "ask_user", '{"question":"Which edition?"}')],
        },
        {"role": "tool", "tool_call_id": "call_2", "name": "ask_user", "content": "The second one!"},
        {"role": "assistant", "content": "It has 120 pages.\nAnswer: 120"},
    ),
    (
        {"role": "system", "content": "你是一个有用的助手。"},
        {"role": "user", "content": "湖有多深？"},
        {"role": "assistant", "content": "", "tool_calls": [_call(0, "wiki", '{"title":"青湖"}')]},
        {"role": "tool", "tool_call_id": "call_0", "name": "wiki", "content": "青湖深27米。"},
        {"role": "assistant", "content": "答案：27"},
    ),
)
"""With what makes templates and tokenizers differ: calls with and without words, several results, lines that end with
punctuation, quotation marks, digits, two languages, turns of one and of several lines."""
