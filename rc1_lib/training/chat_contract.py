"""Check before training that it learns what sampling sees: chat template, tokens and end of turn of a base.

Two dialogues are rendered by the base's own template and tokenized by its own tokenizer. Training must read and learn
exactly these tokens, and every server must stop where training teaches a turn to end.
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
from rc1_lib.training.warm_start import padded_batch

_OTHER_DAY = "a day of another run"


@dataclass(frozen=True, slots=True)
class _Subject:
    """The base to check.

    Attributes:
        form: chat format of the base's tokenizer, as the run uses it.
        ends: token ids at which a server stops.
    """

    form: ChatFormat
    config: RunConfig
    ends: frozenset[int]

    def refusal(self, what: str) -> ConfigError:
        """Return the error for a broken contract."""
        return ConfigError(f"base_model: '{self.form.tokenizer.name_or_path}' {what}")


def check_chat_contract(form: ChatFormat, config: RunConfig, ends: frozenset[int]) -> str:
    """Reject a base whose demonstrations, prompts or ends of turns differ from what sampling would see.

    Args:
        form: chat format of the base's tokenizer, as the run uses it.
        ends: token ids at which a server stops.

    Returns:
        What is unusual about the template, in words.

    Raises:
        ConfigError: saying what is broken and what to set.
    """
    subject = _Subject(form, config, ends)
    return "; ".join(filter(None, (check(subject) for check in CHECKS.values())))


def _tokens(subject: _Subject) -> str:
    """Check that training reads exactly the tokens of the text that the template renders."""
    form = subject.form
    for messages in _DIALOGUES:
        ids, _ = form.dialogue_ids(messages)
        expected = [token for part, _ in _expected(form, messages) for token in part]
        if ids != expected:
            at = _first_difference(ids, expected)
            raise subject.refusal(
                f"has a tokenizer that splits a rendered dialogue differently from its parts: at token {at} training "
                f"would read {form.decode(ids[at : at + 4])!r} as {ids[at : at + 4]}, a server as "
                f"{expected[at : at + 4]}; use a base with a byte-level tokenizer"
            )
        sampled = _as_sampled(form, messages)
        if ids != sampled:
            raise subject.refusal("tokenizes a demonstration differently from the same dialogue when it is sampled")
    return ""


def _mask(subject: _Subject) -> str:
    """Check that exactly the assistant's turns with their ends are learned: no other text and no padding."""
    form = subject.form
    for messages in _DIALOGUES:
        _, own = form.dialogue_ids(messages)
        expected = [mine for part, mine in _expected(form, messages) for _ in part]
        if own != expected:
            raise subject.refusal(
                f"has an action mask that is wrong from token {_first_difference(own, expected)} on: {sum(own)} tokens "
                f"of a dialogue would be learned, but {sum(expected)} are the assistant's"
            )
    return ""


def _padding(subject: _Subject) -> str:
    """Check that training batches have exactly these tokens as labels, whatever the padding."""
    form = subject.form
    encoded = [form.dialogue_ids(messages) for messages in _DIALOGUES]
    learned = sorted([token for token, mine in zip(ids, own, strict=True) if mine] for ids, own in encoded)
    dialogues = [Demonstration(str(number), ids, own) for number, (ids, own) in enumerate(encoded)]
    batch, first = collate_demonstrations(dialogues, form.pad_id), padded_batch(dialogues, form.pad_id)
    in_a_run = sorted(ids[own].tolist() for ids, own in zip(batch.ids, batch.action_mask, strict=True))
    in_a_warm_start = sorted(
        ids[own].tolist() for ids, own in zip(first["input_ids"], first["action_mask"], strict=True)
    )
    for name, found in (("a run", in_a_run), ("the warm start", in_a_warm_start)):
        if found != learned:
            counts = f"{sum(map(len, found))} tokens of {len(encoded)} dialogues, expected {sum(map(len, learned))}"
            raise subject.refusal(f"has labels that differ from its turns in {name}: {counts}")
    return "pads batches with its end-of-turn token, which is learned only at the end of a turn" * (
        form.pad_id == form.end_id
    )


def _tools(subject: _Subject) -> str:
    """Check that the prompt describes every tool, unless the configuration says that the base knows them."""
    described = subject.form.template.described
    if not subject.config.training.describe_tools:
        return "tools are not described (training.describe_tools: false), so the base must know them"
    text = subject.form.decode(subject.form.prompt_ids(_DIALOGUES[0][:2]))
    functions = [tool["function"] for tool in TOOLS]
    missing = [one["name"] for one in functions if f'"{one["name"]}"' not in text or one["description"] not in text]
    if missing:
        raise subject.refusal(
            f"renders a prompt that does not describe {', '.join(missing)}, although training.describe_tools is true; "
            "use another base, or set it to false if the base was trained with the tools"
        )
    if described == "template":
        return "the template describes the tools"
    return (
        "RC1 describes the tools at the beginning of the system message, because the template does not, or uses "
        "another format of calls than the environment reads"
    )


def _roles(subject: _Subject) -> str:
    """Check that the model reads every system, user and tool message exactly once."""
    form, lacking = subject.form, subject.form.template.missing_roles
    for messages in _DIALOGUES:
        text = form.decode(form.dialogue_ids(messages)[0])
        for message in messages:
            times = text.count(str(message["content"]))
            if message["role"] != "assistant" and times != 1:
                raise subject.refusal(
                    f"renders the content of the role '{message['role']}' {times} times, expected once; use another "
                    "base, or another chat template"
                )
    said = [
        "the system message is part of the first user message, because the template has no system role"
        * lacking.system,
        "tool results are in user messages, because the template has no tool role or changes their text"
        * lacking.tools,
    ]
    return "; ".join(filter(None, said))


def _thoughts(subject: _Subject) -> str:
    """Check that no demonstrated text is inside an open block of thoughts, and that `enable_thinking` has an effect."""
    form, wanted = subject.form, subject.config.training.enable_thinking
    if wanted is not None and not form.template.reads("enable_thinking"):
        raise subject.refusal(
            f"has a chat template that does not read enable_thinking, but training.enable_thinking is "
            f"{str(wanted).lower()}; set it to null"
        )
    for messages in _DIALOGUES:
        ids, own = form.dialogue_ids(messages)
        for end in range(1, len(ids) + 1):
            if not own[end - 1] or own[end : end + 1] == [True]:
                continue  # only look at ends of turns
            text = form.decode(ids[:end])
            if text.rfind(THINK) > text.rfind(THINK_END):
                raise subject.refusal(
                    "opens thoughts in its generation prompt, and a demonstration would never close them; set "
                    "training.enable_thinking: false"
                )
    opens, most = form.opens_thoughts, subject.config.training.rollout.thought_tokens
    if most is not None and form.thoughts is None:
        raise subject.refusal(
            f"has no single token {THINK_END}, so the end of thoughts cannot be detected, but "
            f"training.rollout.thought_tokens is {most}; set it to null"
        )
    if opens and wanted is False:
        raise subject.refusal(
            "opens thoughts in its generation prompt, although training.enable_thinking is false; set it to null with "
            "a rollout_len that has room for thoughts and answer, or use a base that answers without thoughts"
        )
    room = f"count towards rollout_len ({subject.config.rollout_len} tokens a turn)"
    if most is not None:
        room = f"may have {most} tokens (training.rollout.thought_tokens), and the rest {subject.config.rollout_len}"
    return f"thinks before it answers: demonstrations close its thoughts at once, sampled ones {room}" * opens


def _date(subject: _Subject) -> str:
    """Check that a prompt does not depend on the day."""
    template, roles = subject.form.template, ("system", "user")
    if template.on_day(_OTHER_DAY, roles) != template.prompt(roles):
        raise subject.refusal(
            "has a chat template that prints today's date, so a run that resumes after midnight would differ; write a "
            "fixed date into the template"
        )
    return f"the template prints a date, which RC1 sets to {DATE:%d %B %Y} in every run" * template.dated


def _end(subject: _Subject) -> str:
    """Check that a server stops exactly where training teaches that a turn ends."""
    form = subject.form
    end = f"'{form.template.end}' ({form.end_id})"
    if form.end_id not in subject.ends:
        stops = ", ".join(map(str, sorted(subject.ends))) or "no token"
        raise subject.refusal(
            f"ends a turn with {end} by its chat template, but its generation_config.json (without one, its "
            f"config.json) stops at {stops}: an exported model would not stop; set eos_token_id there to "
            f"{sorted({*subject.ends, form.end_id})}"
        )
    said = {token for messages in _DIALOGUES for token, own in zip(*form.dialogue_ids(messages), strict=True) if own}
    if within := sorted((said & subject.ends) - {form.end_id}):
        raise subject.refusal(
            f"would stop within a turn: its generation_config.json (without one, its config.json) stops at {within[0]} "
            f"({form.decode(within[:1])!r}), which occurs before the assistant's turn ends; remove it from "
            "eos_token_id there"
        )
    if form.tokenizer.eos_token_id == form.end_id:
        return ""
    return f"a turn ends with {end}, which is not the tokenizer's eos_token '{form.tokenizer.eos_token}'"


def _forged(subject: _Subject) -> str:
    """Check that no content of a message becomes a special token."""
    form = subject.form
    marks = {number: token.content for number, token in form.tokenizer.added_tokens_decoder.items()}
    marks = {number: mark for number, mark in marks.items() if mark.strip()}
    everything = " ".join(marks.values())

    def found(content: str) -> Counter[int]:
        opening: list[Message] = [{"role": "system", "content": content}, {"role": "user", "content": content}]
        replies: list[Message] = [{"role": "tool", "tool_call_id": "call_0", "name": "wiki", "content": content}]
        return Counter(token for token in (*form.prompt_ids(opening), *form.observation_ids(replies)) if token in marks)

    forged = found(everything) - found("x")
    if forged:
        names = ", ".join(sorted(marks[number] for number in forged)[:4])
        raise subject.refusal(f"reads {names} in what a user or a tool says as its own special tokens")
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
"""Name -> check. Each returns what is unusual, or raises an error."""


def _expected(form: ChatFormat, messages: Sequence[Message]) -> list[tuple[list[int], bool]]:
    """Tokenize the rendered text of a dialogue part by part; also return whether each part is the assistant's."""

    def ids_of(text: str) -> list[int]:
        return list(form.tokenizer(text, add_special_tokens=False)["input_ids"])

    expected, read = [], ""
    for text, own in form.template.pieces(messages, turn_text):
        before, both = ids_of(read), ids_of(read + text)
        # Where the tokenizer would merge across two parts, the model generates the second one separately.
        ids = both[len(before) :] if both[: len(before)] == before else ids_of(text)
        expected.append((ids, own))
        read += text
    return expected


def _first_difference(found: Sequence[object], expected: Sequence[object]) -> int:
    pairs = zip(found, expected, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(found), len(expected)))


def _as_sampled(form: ChatFormat, messages: Sequence[Message]) -> list[int]:
    """Tokenize a dialogue as a rollout does in which the model writes exactly the demonstrated turns."""
    first = next(number for number, message in enumerate(messages) if message["role"] == "assistant")
    ids, replies = form.prompt_ids(messages[:first]), list[Message]()
    for message in messages[first:]:
        if message["role"] != "assistant":
            replies.append(message)
            continue
        ids += [*(form.observation_ids(replies) if replies else []), *form.turn_ids(message)]
        replies = []
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
"""They contain what templates and tokenizers treat differently: calls with and without text, several results, lines
that end with punctuation, quotation marks, digits, two languages, and turns of one and several lines."""
