"""Render RC1's messages with a base's own chat template.

Templates differ. Some have no system role or no tool role, some teach another format of calls than the environment
reads, some print today's date. If a template lacks something, RC1 uses what it has: tool results and system message go
into user messages, and tool descriptions go into the system message. Rendering a dialogue shows what a template lacks.
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
"""Replaces today's date in templates that print it, so that a run does not change when it resumes after midnight. It is
the default date of Llama 3.1's template."""

_OPEN, _CLOSE = "\ue000", "\ue001"
PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_EMPTY_THOUGHTS = re.compile(rf"{THINK}\s*{THINK_END}\s*")
_CLOCK = re.compile(r"""\bstrftime_now\(\s*(?P<quote>["'])(?P<form>[^"']*)(?P=quote)\s*\)""")
_CHANCE = re.compile(r"""\|\s*random\b|\bmap\(\s*["']random["']|\blipsum\b""")
"""What a template can draw by chance: Jinja's filter `random` and its function `lipsum`."""
_CALL_FORM = re.compile(rf'{CALL}\s*{{"name": [^\n]*"arguments": [^\n]*}}\s*{CALL_END}')
"""A call in the format that the environment reads, or a template's description of that format."""
_SHOWN = 40


class _Unable(ConfigError):
    """The template cannot render these messages.

    Attributes:
        reason: the template's error message.
    """

    def __init__(self, name: str, reason: str) -> None:
        """Create the error from the tokenizer's name and the template's error message."""
        super().__init__(
            f"base_model: the chat template of '{name}' cannot render a dialogue of the pool ({reason}); use another "
            "base, or give it a template that accepts system, user, assistant and tool messages in any order"
        )
        self.reason = reason


class MissingRoles(NamedTuple):
    """Which messages a template receives in another role, because it lacks theirs.

    Attributes:
        system: the system message is put before the first user message.
        tools: tool results are in user messages.
    """

    system: bool
    tools: bool


class ChatTemplate:
    """The chat template of a tokenizer, from messages to text.

    Attributes:
        source: the template, with a fixed date.
        described: what describes the tools: `"template"`, `"system text"`, or `""` for nothing.
        end: special token that ends an assistant's turn.
        closing: text that begins every demonstrated turn and closes the thoughts that the generation prompt opens, or
            "".
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        marks: re.Pattern[str],
        *,
        describe_tools: bool = False,
        enable_thinking: bool | None = None,
    ) -> None:
        """Find out what the template can render.

        Args:
            tokenizer: has a chat template.
            marks: matches the tokenizer's special tokens.
            describe_tools: whether prompts describe the tools.
            enable_thinking: value of this variable of the template; None leaves it unset.

        Raises:
            ConfigError: if the template cannot render what training would learn, in any combination of roles.
        """
        self._tokenizer = tokenizer
        self._name = tokenizer.name_or_path
        self._tools: list[dict[str, Any]] = []
        self._description = ""
        self._variables = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        self.described = ""
        self.source = self._source(describe_tools)
        self.missing_roles = MissingRoles(system=False, tools=False)
        self.end = self._end(marks)
        self.closing = closing_of(lambda messages, opening: self._render(messages, opening=opening))
        self.missing_roles = self._missing_roles()
        if describe_tools:
            self._describe()

    @property
    def used(self) -> dict[str, Any]:
        """Describe how prompts were made, for those who serve the policy with the template alone."""
        return {
            "tools_described_by": self.described or None,
            "system_text": self._description or None,
            "system_in_user_message": self.missing_roles.system,
            "tool_replies_in_user_message": self.missing_roles.tools,
            "date": DATE.isoformat() if self.dated else None,
            **{"enable_thinking": None, **self._variables},
            "end_of_turn": self.end,
        }

    def prompt(self, roles: Sequence[str]) -> str:
        """Render the opening messages by their roles, up to the assistant's first token.

        Returns:
            Text with a placeholder for every content, which `PLACE` matches.
        """
        placed = [{"role": role, "content": place(number)} for number, role in enumerate(roles)]
        return self._render(self.given(placed), opening=True)

    @property
    def dated(self) -> bool:
        """Whether the template asks for today's date, which is replaced by `DATE`."""
        return bool(_CLOCK.search(self._found))

    def observation(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Render the text from the end of an assistant's turn to the first token of the next one.

        Args:
            messages: tool results; only role, name and id are used.

        Returns:
            Text with a placeholder for every content, which `PLACE` matches.
        """
        shown = [{**_bare(message), "content": place(number)} for number, message in enumerate(messages)]
        said = place(len(messages))
        before = [{"role": "user", "content": "x"}, {"role": "assistant", "content": said}]
        text = self._render([*before, *self._replies(shown)], opening=True)
        return text.split(said, 1)[1].removeprefix(self.end)

    def whole(self, messages: Sequence[Mapping[str, Any]], turn: Callable[[Any], str]) -> str:
        """Render a finished dialogue in one go.

        Args:
            messages: in the pool's format.
            turn: renders the text of an assistant's message.
        """
        shown = [{"role": "assistant", "content": turn(m)} if m["role"] == "assistant" else m for m in messages]
        return self._render(self.given(shown), opening=False)

    def pieces(self, messages: Sequence[Mapping[str, Any]], turn: Callable[[Any], str]) -> list[tuple[str, bool]]:
        """Render the same dialogue turn by turn, as it happens in a rollout.

        Returns:
            The texts in order, and whether each is the assistant's.
        """
        first = next(number for number, message in enumerate(messages) if message["role"] == "assistant")
        roles = [str(message["role"]) for message in messages[:first]]
        pieces = [(_filled(self.prompt(roles), messages), False)]
        for number, said in enumerate(messages):
            if said["role"] != "assistant":
                continue
            pieces.append((f"{self.closing}{turn(said)}{self.end}", True))
            replies = list(takewhile(lambda message: message["role"] != "assistant", messages[number + 1 :]))
            if replies:
                pieces.append((_filled(self.observation(replies), replies), False))
        return pieces

    def given(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages as the template receives them: in roles that it has, with the tools described."""
        given = self._replies(messages)
        if self._description:
            system = given.pop(0)["content"] if given and given[0]["role"] == "system" else ""
            text = "\n\n".join(filter(None, (self._description, system)))
            given.insert(0, {"role": "system", "content": text})
        if self.missing_roles.system and len(given) > 1 and given[0]["role"] == "system":
            text = given.pop(0)["content"]
            given[0] = {**given[0], "content": f"{text}\n\n{given[0]['content']}"}
        return given

    def reads(self, variable: str) -> bool:
        """Whether this variable of the template changes a prompt."""
        asked = [{"role": "user", "content": "x"}]
        made = [self._render(asked, opening=True, **{variable: value}) for value in (True, False)]
        return made[0] != made[1]

    def on_day(self, day: str, roles: Sequence[str]) -> str:
        """Render `prompt` as of a given day, if the template still asks for the date."""
        moved = f"{{%- macro strftime_now(form) -%}}{day}{{%- endmacro -%}}{self.source}"
        placed = [{"role": role, "content": place(number)} for number, role in enumerate(roles)]
        return self._render(self.given(placed), opening=True, chat_template=moved)

    def _replies(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        given: list[dict[str, Any]] = []
        before = ""
        for message in messages:
            if message["role"] == "tool" and self.missing_roles.tools:
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
        """Return the template with a fixed date."""
        try:
            self._found = self._tokenizer.get_chat_template(tools=cast(Any, list(TOOLS) if tools else None))
        except ValueError as error:  # it has several templates, none of them the default
            raise self._refusal(f"cannot be chosen ({' '.join(str(error).split())}); keep only one template") from error
        if drawn := _CHANCE.search(self._found):
            raise self._refusal(
                f"uses randomness ({drawn[0]}), so a dialogue would get other tokens each time; remove it from the "
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
                f"cannot render a dialogue of user and assistant ({error.reason}); use another base"
            ) from error
        after = text.partition(said)[2]
        found = marks.match(after)
        if found is None:
            raise self._refusal(
                f"does not end an assistant's turn with a special token: found {after[:_SHOWN]!r} after its text, so "
                f"sampling could not detect the end; use an instruction-tuned model, or another template"
            )
        return found.group()

    def _missing_roles(self) -> MissingRoles:
        """Return the first combination of roles in which rendering turn by turn equals rendering in one go."""
        why = ""
        for system, tools in product((False, True), repeat=2):
            self.missing_roles = MissingRoles(system, tools)
            why = self._mismatch()
            if not why:
                return self.missing_roles
        raise self._refusal(why)

    def _describe(self) -> None:
        """Let the template describe the tools if it can, in the format that is read; or else the system message."""
        self._tools = [dict(tool) for tool in TOOLS]
        if self._describes() and not self._mismatch():
            self.described = "template"
            return
        self._tools, self.source = [], self._source(False)
        self._description = DESCRIPTION
        self.described = "system text"
        if why := self._mismatch():
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

    def _mismatch(self) -> str:
        """Say where a dialogue rendered turn by turn differs from one rendered in one go; "" if nowhere."""
        turn = lambda message: str(message["content"])  # noqa: E731
        try:
            whole = self.whole(_DIALOGUE, turn)
            pieces = [text for text, _ in self.pieces(_DIALOGUE, turn)]
            again = self.whole(_DIALOGUE, turn), [text for text, _ in self.pieces(_DIALOGUE, turn)]
        except _Unable as error:
            return f"cannot render a dialogue with tools ({error.reason}); use another base"
        if again != (whole, pieces):
            return (
                "renders the same dialogue differently when asked twice, so the policy would learn other text than it "
                "samples; remove what differs each time"
            )
        ours, theirs = (_EMPTY_THOUGHTS.sub("", text) for text in ("".join(pieces), whole))
        unsaid = [said["role"] for said in _DIALOGUE if str(said["content"]) not in ours]
        if unsaid:
            return f"leaves out the content of the role '{unsaid[0]}'; use another base, or another template"
        if theirs.startswith(ours):
            return ""
        at = next(at for at in range(len(ours)) if ours[at] != theirs[at : at + 1])
        return (
            "renders a finished dialogue differently from the prompts for its turns: where sampling sees "
            f"{ours[at : at + _SHOWN]!r}, the finished dialogue has {theirs[at : at + _SHOWN]!r}, so training would "
            "not learn what is sampled: use another base, or give it a template that renders every turn after its "
            "generation prompt"
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
"""A dialogue with everything that the pool has. The quotation and the line break show what a template escapes."""


def fixed_date(template: str) -> str:
    """Replace every request for today's date in a template by `DATE`."""
    return _CLOCK.sub(lambda call: json.dumps(DATE.strftime(call["form"])), template)


def closing_of(render: Callable[[list[dict[str, Any]], bool], str]) -> str:
    """Return what a template writes between a prompt that opens thoughts and a last turn without thoughts, or "".

    Args:
        render: renders messages with the template, with or without a generation prompt.
    """
    asked, said = [{"role": "user", "content": "x"}], place(0)
    prompt = render(asked, True)
    if prompt.rfind(THINK) <= prompt.rfind(THINK_END):
        return ""
    before = render([*asked, {"role": "assistant", "content": said}], False).partition(said)[0]
    written = before.removeprefix(prompt) if before.startswith(prompt) else ""
    return written if written.strip() == THINK_END else f"\n{THINK_END}\n\n"


def place(number: int) -> str:
    """Return the placeholder for the content with this number."""
    return f"{_OPEN}{number}{_CLOSE}"


def _filled(text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    return PLACE.sub(lambda found: str(messages[int(found[1])]["content"]), text)


def _bare(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("role", "name", "tool_call_id")
    return {key: value for key, value in message.items() if key in kept}
