"""What a base's own chat template makes of RC1's messages, as text.

Templates differ in what they know. One has no role for the system or for tools, one teaches another form of calls than
the environment reads, one prints today's date. Where a template cannot say what RC1 has to say, RC1 says it in what the
template does know: a tool's reply and a system message are then in a user's message, and the tools are described in
the system text. Which of these a template needs is found out by rendering a dialogue with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import product, takewhile
from typing import Any, NamedTuple, cast

from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerBase

from rc1_lib.environment.markers import CALL, CALL_END, THINK, THINK_END
from rc1_lib.errors import ConfigError
from rc1_lib.records import Message
from rc1_lib.training.tool_schemas import ANSWER, ANSWER_END, DESCRIPTION, TOOLS

DATE = date(2024, 7, 26)
"""The date that a template prints which asks for today's: a run that is resumed after midnight is the same run. It is
the one that Llama 3.1's template prints where it is given none."""

_OPEN, _CLOSE = "\ue000", "\ue001"
PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_EMPTY_THOUGHTS = re.compile(rf"{THINK}\s*{THINK_END}\s*")
_CLOCK = re.compile(r"""\bstrftime_now\(\s*(?P<quote>["'])(?P<form>[^"']*)(?P=quote)\s*\)""")
_CHANCE = re.compile(r"""\|\s*random\b|\bmap\(\s*["']random["']|\blipsum\b""")
"""What a template can draw by chance: Jinja's filter `random` and its function `lipsum`."""
_CALL_FORM = re.compile(rf'{CALL}\s*{{"name": [^\n]*"arguments": [^\n]*}}\s*{CALL_END}')
"""A call as the environment reads it, or how a template describes it."""
_SHOWN = 40


class _Unable(ConfigError):
    """The template refuses such messages.

    Attributes:
        reason: what it says of them.
    """

    def __init__(self, name: str, reason: str) -> None:
        """Takes the tokenizer's name, and what the template says."""
        super().__init__(
            f"base_model: the chat template of '{name}' refuses a dialogue of the pool ({reason}); take another base, "
            f"or give it a template that writes system, user, assistant and tool in any order"
        )
        self.reason = reason


class Manner(NamedTuple):
    """What a template is given in another role than its own, since it does not know that role.

    Attributes:
        system: the system text begins the first user's message.
        tools: what tools return is in a user's message.
    """

    system: bool
    tools: bool


class ChatTemplate:
    """The chat template of a tokenizer, from messages to text.

    Attributes:
        source: the template, with its date fixed.
        manner: which roles it lacks.
        described: who describes the tools: `"template"`, `"system text"`, or `""` where nobody does.
        end: the special token by which it ends an assistant's turn.
        closing: what a demonstrated turn begins with, since the prompt for it ends inside a block of thoughts; else "".
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        marks: re.Pattern[str],
        *,
        describe_tools: bool = False,
        enable_thinking: bool | None = None,
    ) -> None:
        """Finds out what the template knows.

        Args:
            tokenizer: has a chat template.
            marks: finds the tokenizer's special tokens in a text.
            describe_tools: whether prompts say which tools there are.
            enable_thinking: value of the template's variable of that name; None leaves it unset.

        Raises:
            ConfigError: when no manner makes it say what training would learn.
        """
        self._tokenizer = tokenizer
        self._name = tokenizer.name_or_path
        self._tools: list[dict[str, Any]] = []
        self._description = ""
        self._variables = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        self.described = ""
        self.source = self._source(describe_tools)
        self.manner = Manner(system=False, tools=False)
        self.end = self._end(marks)
        self.closing = self._closing()
        self.manner = self._manner()
        if describe_tools:
            self._describe()

    @property
    def used(self) -> dict[str, Any]:
        """How prompts were made with it, for whoever serves the policy with the template alone."""
        return {
            "tools_described_by": self.described or None,
            "system_text": self._description or None,
            "system_in_user_message": self.manner.system,
            "tool_replies_in_user_message": self.manner.tools,
            "date": DATE.isoformat() if self.dated else None,
            **{"enable_thinking": None, **self._variables},
            "end_of_turn": self.end,
        }

    def prompt(self, roles: Sequence[str]) -> str:
        """A dialogue's opening by the roles of its messages, up to the assistant's first token.

        Returns:
            Text in which `PLACE` finds the contents, by number.
        """
        placed = [{"role": role, "content": place(number)} for number, role in enumerate(roles)]
        return self._render(self.given(placed), opening=True)

    @property
    def dated(self) -> bool:
        """Whether it asks for today's date, in the place of which it gets `DATE`."""
        return bool(_CLOCK.search(self._found))

    def observation(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text between the end of an assistant's turn and the next one's first token.

        Args:
            messages: what tools returned; only role, name and id are looked at.

        Returns:
            Text in which `PLACE` finds the contents, by number.
        """
        shown = [{**_bare(message), "content": place(number)} for number, message in enumerate(messages)]
        said = place(len(messages))
        before = [{"role": "user", "content": "x"}, {"role": "assistant", "content": said}]
        text = self._render([*before, *self._replies(shown)], opening=True)
        return text.split(said, 1)[1].removeprefix(self.end)

    def whole(self, messages: Sequence[Mapping[str, Any]], turn: Callable[[Any], str]) -> str:
        """A finished dialogue as the template writes it in one go.

        Args:
            messages: of the pool's form.
            turn: the text of an assistant's message.
        """
        shown = [{"role": "assistant", "content": turn(m)} if m["role"] == "assistant" else m for m in messages]
        return self._render(self.given(shown), opening=False)

    def pieces(self, messages: Sequence[Mapping[str, Any]], turn: Callable[[Any], str]) -> list[tuple[str, bool]]:
        """The same dialogue as it comes about: what the model reads, and what it writes, in turns.

        Returns:
            The texts in order, each with whether it is the assistant's own.
        """
        first = next(number for number, message in enumerate(messages) if message["role"] == "assistant")
        roles = [str(message["role"]) for message in messages[:first]]
        pieces = [(_filled(self.prompt(roles), messages), False)]
        for number, said in enumerate(messages):
            if said["role"] != "assistant":
                continue
            pieces.append((f"{self.closing}{turn(said)}{self.end}", True))
            told = list(takewhile(lambda message: message["role"] != "assistant", messages[number + 1 :]))
            if told:
                pieces.append((_filled(self.observation(told), told), False))
        return pieces

    def given(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The messages as the template is given them: in roles that it knows, the tools described."""
        given = self._replies(messages)
        if self._description:
            system = given.pop(0)["content"] if given and given[0]["role"] == "system" else ""
            text = "\n\n".join(filter(None, (self._description, system)))
            given.insert(0, {"role": "system", "content": text})
        if self.manner.system and len(given) > 1 and given[0]["role"] == "system":
            text = given.pop(0)["content"]
            given[0] = {**given[0], "content": f"{text}\n\n{given[0]['content']}"}
        return given

    def reads(self, variable: str) -> bool:
        """Whether a prompt looks otherwise where this variable of the template is true than where it is false."""
        asked = [{"role": "user", "content": "x"}]
        made = [self._render(asked, opening=True, **{variable: value}) for value in (True, False)]
        return made[0] != made[1]

    def on_day(self, day: str, roles: Sequence[str]) -> str:
        """What `prompt` would be on this day, if the template still asked which day it is."""
        moved = f"{{%- macro strftime_now(form) -%}}{day}{{%- endmacro -%}}{self.source}"
        placed = [{"role": role, "content": place(number)} for number, role in enumerate(roles)]
        return self._render(self.given(placed), opening=True, chat_template=moved)

    def _replies(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        given: list[dict[str, Any]] = []
        before = ""
        for message in messages:
            if message["role"] == "tool" and self.manner.tools:
                block = f"{ANSWER}\n{message['content']}\n{ANSWER_END}"
                if before == "tool":
                    given[-1]["content"] += f"\n{block}"
                else:
                    given.append({"role": "user", "content": block})
            else:
                given.append(dict(message))
            before = str(message["role"])
        return given

    def _source(self, tools: bool) -> str:
        """The template with its date fixed."""
        try:
            self._found = self._tokenizer.get_chat_template(tools=cast(Any, list(TOOLS) if tools else None))
        except ValueError as error:  # it has several, none of which is for this
            raise self._refusal(f"cannot be chosen ({' '.join(str(error).split())}); leave it one template") from error
        if drawn := _CHANCE.search(self._found):
            raise self._refusal(
                f"draws by chance ({drawn[0]}), so a dialogue would be other tokens each time; take that out of the "
                f"template"
            )
        fixed = fixed_date(self._found)
        if "strftime_now(" in fixed:
            raise self._refusal(
                "computes the format of today's date, so RC1 cannot fix the date; write the format into the call: "
                "strftime_now('%d %B %Y')"
            )
        return fixed

    def _render(self, messages: Sequence[Mapping[str, Any]], *, opening: bool, **variables: Any) -> str:
        settings = {"chat_template": self.source, **self._variables, **variables}
        try:
            rendered = self._tokenizer.apply_chat_template(
                cast(Any, list(messages)),
                tools=cast(Any, self._tools or None),
                tokenize=False,
                add_generation_prompt=opening,
                **settings,
            )
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise _Unable(self._name, " ".join(str(error).split())[:200]) from error
        assert isinstance(rendered, str)
        return rendered

    def _end(self, marks: re.Pattern[str]) -> str:
        said = place(0)
        turns = [("user", "x"), ("assistant", said), ("user", "y")]
        try:
            text = self._render([{"role": role, "content": content} for role, content in turns], opening=True)
        except _Unable as error:
            raise self._refusal(
                f"writes no dialogue of user and assistant ({error.reason}); take another base"
            ) from error
        after = text.partition(said)[2]
        found = marks.match(after)
        if found is None:
            raise self._refusal(
                f"does not end an assistant's turn with a special token: found {after[:_SHOWN]!r} after its words, so "
                f"sampling could not detect the end; take an instruction-tuned model, or another template"
            )
        return found.group()

    def _closing(self) -> str:
        """What the template writes between a prompt that opens thoughts and a last turn without any."""
        asked, said = [{"role": "user", "content": "x"}], place(0)
        prompt = self._render(asked, opening=True)
        if prompt.rfind(THINK) <= prompt.rfind(THINK_END):
            return ""
        before = self._render([*asked, {"role": "assistant", "content": said}], opening=False).partition(said)[0]
        written = before.removeprefix(prompt) if before.startswith(prompt) else ""
        return written if written.strip() == THINK_END else f"\n{THINK_END}\n\n"

    def _manner(self) -> Manner:
        """The first manner in which the template writes piece by piece what it writes in one go."""
        why = ""
        for system, tools in product((False, True), repeat=2):
            self.manner = Manner(system, tools)
            why = self._misfit()
            if not why:
                return self.manner
        raise self._refusal(why)

    def _describe(self) -> None:
        """Have the template describe the tools, where it does and in the form that is read; else the system text."""
        self._tools = [dict(tool) for tool in TOOLS]
        if self._describes() and not self._misfit():
            self.described = "template"
            return
        self._tools, self.source = [], self._source(False)
        self._description = DESCRIPTION
        self.described = "system text"
        if why := self._misfit():
            raise self._refusal(why)

    def _describes(self) -> bool:
        asked = [{"role": "system", "content": "s"}, {"role": "user", "content": "x"}]
        try:
            text = self._render(self.given(asked), opening=True)
        except _Unable:
            return False
        named = all(f'"{tool["function"]["name"]}"' in text for tool in TOOLS)
        return named and (bool(_CALL_FORM.search(text)) or any(map(self._writes_calls, ({"q": "x"}, '{"q": "x"}'))))

    def _writes_calls(self, arguments: object) -> bool:
        call = {"id": "call00000", "type": "function", "function": {"name": "wiki", "arguments": arguments}}
        said = {"role": "assistant", "content": "", "tool_calls": [call]}
        try:
            text = self._render([{"role": "user", "content": "x"}, said], opening=False)
        except _Unable:
            return False
        return f'{CALL}\n{{"name": "wiki", "arguments": {{"q": "x"}}}}\n{CALL_END}' in text

    def _misfit(self) -> str:
        """Where a dialogue put together piece by piece differs from the template's own; "" where it does not."""
        turn = lambda message: str(message["content"])  # noqa: E731
        try:
            whole = self.whole(_DIALOGUE, turn)
            pieces = [text for text, _ in self.pieces(_DIALOGUE, turn)]
            again = self.whole(_DIALOGUE, turn), [text for text, _ in self.pieces(_DIALOGUE, turn)]
        except _Unable as error:
            return f"cannot write a dialogue with tools ({error.reason}); take another base"
        if again != (whole, pieces):
            return (
                "writes one dialogue in two ways when it is asked twice, so what is learned would not be what is "
                "sampled; take out of it what differs each time"
            )
        ours, theirs = (_EMPTY_THOUGHTS.sub("", text) for text in ("".join(pieces), whole))
        unsaid = [said["role"] for said in _DIALOGUE if str(said["content"]) not in ours]
        if unsaid:
            return f"leaves out what the role '{unsaid[0]}' says; take another base, or give it a template that has it"
        if theirs.startswith(ours):
            return ""
        at = next(at for at in range(len(ours)) if ours[at] != theirs[at : at + 1])
        return (
            f"writes a dialogue otherwise than it asks for its turns: where sampling sees {ours[at : at + _SHOWN]!r}, "
            f"the finished dialogue has {theirs[at : at + _SHOWN]!r}; what is learned would not be what is sampled: "
            f"take another base, or give it a template that writes every turn after its generation prompt"
        )

    def _refusal(self, what: str) -> ConfigError:
        return ConfigError(f"base_model: the chat template of '{self._name}' {what}")


_DIALOGUE: tuple[Message, ...] = (
    {"role": "system", "content": "Help."},
    {"role": "user", "content": 'Who wrote "It"?'},
    {"role": "assistant", "content": "I look."},
    {"role": "tool", "tool_call_id": "call_0", "name": "wiki", "content": 'A page of "It".\nIts line.'},
    {"role": "assistant", "content": "I look twice."},
    {"role": "tool", "tool_call_id": "call_1", "name": "wiki", "content": "Another."},
    {"role": "tool", "tool_call_id": "call_2", "name": "calc", "content": "3"},
    {"role": "assistant", "content": "Answer: 3"},
)
"""A dialogue with everything that a pool's has: a quotation and a line break show what a template escapes."""


def fixed_date(template: str) -> str:
    """A template in which every question for today's date is answered with `DATE`."""
    return _CLOCK.sub(lambda call: json.dumps(DATE.strftime(call["form"])), template)


def place(number: int) -> str:
    """What a template's text has where the content of this number goes."""
    return f"{_OPEN}{number}{_CLOSE}"


def _filled(text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    return PLACE.sub(lambda found: str(messages[int(found[1])]["content"]), text)


def _bare(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("role", "name", "tool_call_id")
    return {key: value for key, value in message.items() if key in kept}
