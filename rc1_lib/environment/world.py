"""The environment of one row: its pages, its calculator and its simulated user.

It matches the posed question: a piece that was taken out of a story is missing in the pages too; only the user has it.
Nothing here is random; the same calls always get the same observations.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from rc1_lib.environment.calls import CheckedCall
from rc1_lib.environment.markers import defused
from rc1_lib.environment.user import SimulatedUser
from rc1_lib.errors import RowError
from rc1_lib.numbers.calculator import CalculatorError, calculate
from rc1_lib.records import Language, Message, Row, Task
from rc1_lib.rows.chat import ASK, count_calls
from rc1_lib.rows.playable import UNPLAYABLE, is_playable
from rc1_lib.task_specs import is_right, task_names

UNKNOWN_PAGE = "There is no page of that title."
EMPTY_QUESTION = "The question is empty."


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool returns; `error` if the call failed."""

    text: str
    error: bool = False


class World:
    """The environment of one row.

    Attributes:
        prompt: the messages before the assistant's first.
        task, lang: of the row.
        needs: whether a piece is missing.
        off_target: questions to the user so far that asked for something other than the missing piece.
        obtained: whether the user gave the piece.
        errors: calls that failed so far.
    """

    def __init__(self, row: Row) -> None:
        """Open the environment of `row`, as read from JSON lines or from a frame.

        Raises:
            RowError: when the row lacks a field that the environment needs.
        """
        _check(row)
        slot = row.get("slot") if row["needs_clarification"] else None
        replies = row.get("user_replies")
        assert replies is not None
        self.prompt = _prompt(row)
        self.task: Task = row["task"]
        self.lang: Language = row["lang"]
        self.needs = slot is not None
        self.off_target = self.errors = 0
        self._called: list[str] = []
        self.obtained = False
        self._answer = str(row["answer"])
        self._aliases = tuple(row.get("aliases") or ())
        self._user = SimulatedUser(self.lang, slot["wanted"] if slot else None, replies)
        passages = [(page["title"], defused(page["text"])) for page in row.get("passages") or ()]
        self._pages = dict(reversed(passages))
        # A page is also found by its title in other case or spacing (the first of several).
        self._alike = {_alike(title): text for title, text in reversed(passages)}

    @property
    def asked(self) -> int:
        """Questions to the user so far."""
        return count_calls(self._called)[1]

    @property
    def hops(self) -> int:
        """Other calls so far."""
        return count_calls(self._called)[0]

    def run(self, call: CheckedCall) -> Observation:
        """Make a checked call."""
        tools: dict[str, Callable[[str], Observation]] = {
            "wiki": self.wiki,
            "calc": self.calc,
            "ask_user": self.ask_user,
        }
        return tools[call.tool](call.argument)

    def wiki(self, title: str) -> Observation:
        """The text of a page."""
        self._called.append("wiki")
        text = self._pages.get(title, self._alike.get(_alike(title)))
        return self._failed(UNKNOWN_PAGE) if text is None else Observation(text)

    def calc(self, expression: str) -> Observation:
        """The value of an arithmetic expression."""
        self._called.append("calc")
        try:
            return Observation(calculate(expression))
        except CalculatorError as error:
            return self._failed(str(error))

    def ask_user(self, question: str) -> Observation:
        """What the user says to a question."""
        self._called.append(ASK)
        if not question.strip():
            self.off_target += self.needs
            return self._failed(EMPTY_QUESTION)
        text, gave = self._user.reply(question)
        self.obtained |= gave
        self.off_target += self.needs and not gave
        return Observation(defused(text))

    def is_right(self, answer: str) -> bool:
        """Whether `answer` is right by the rule of the row's task, whether or not it was lucky."""
        return is_right(self.task, answer, self._answer, self._aliases)

    def _failed(self, sentence: str) -> Observation:
        self.errors += 1
        return Observation(sentence, error=True)


def _alike(title: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", title).casefold().split())


def _prompt(row: Row) -> tuple[Message, ...]:
    opening: list[Message] = []
    for message in row["messages"]:
        if message["role"] == "assistant":
            break
        opening.append({"role": message["role"], "content": message["content"]})
    return tuple(opening)


def _check(row: Row) -> None:
    where = f"row '{row.get('id')}'"
    missing = [
        name for name in ("task", "lang", "messages", "answer", "needs_clarification") if row.get(name) in (None, "")
    ]
    if missing:
        raise RowError(
            f"{where} lacks {', '.join(missing)}, which the environment needs; build the row with `rc1 build-pool`"
        )
    if row["task"] not in task_names() or row["lang"] not in ("en", "zh"):
        raise RowError(
            f"{where} is of task '{row['task']}' in '{row['lang']}', expected {', '.join(task_names())} in en or zh"
        )
    slot = row.get("slot")
    if row["needs_clarification"] and not (slot and slot.get("value") and slot.get("wanted")):
        raise RowError(f"{where} needs a clarification, but has no `slot` that the user could give")
    if not is_playable(row):
        raise RowError(f"{where} lacks {UNPLAYABLE}; add them (docs/how-to/own-source.md) or run `rc1 build-pool`")
