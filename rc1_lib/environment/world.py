"""The environment of one row: its pages, its calculator and its simulated user.

It matches the posed question: information that was removed from a story is missing in the pages too; only the user has
it. Nothing here is random: the same calls always get the same observations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rc1_lib.environment.markers import defused
from rc1_lib.environment.turn import CheckedCall
from rc1_lib.errors import RowError
from rc1_lib.numbers.calculator import CalculatorError, calculate
from rc1_lib.records import Language, Message, Row, Task, UserReplies
from rc1_lib.rows.chat import ASK, count_calls
from rc1_lib.rows.playable import UNPLAYABLE, is_playable
from rc1_lib.task_specs import is_right, task_names
from rc1_lib.task_specs.reach import folded
from rc1_lib.text.tokens import tokenize

UNKNOWN_PAGE = "There is no page of that title."
EMPTY_QUESTION = "The question is empty."


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool returns; `error` says whether the call failed."""

    text: str
    error: bool = False


class World:
    """The environment of one row.

    Attributes:
        prompt: the messages before the assistant's first.
        lang: the row's language.
        needs: whether information is missing.
        off_target: number of questions so far for something other than the missing information.
        obtained: whether the user gave the missing information.
        errors: number of failed calls so far.
    """

    def __init__(self, row: Row) -> None:
        """Set up the environment of `row`, as read from JSON lines or from a frame.

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
        # Titles are also matched without regard to case and spacing. Of several equal titles, the first page counts.
        self._by_folded_title = {folded(title): text for title, text in reversed(passages)}

    @property
    def asked(self) -> int:
        """Number of questions to the user so far."""
        return count_calls(self._called)[1]

    @property
    def hops(self) -> int:
        """Number of other calls so far."""
        return count_calls(self._called)[0]

    def run(self, call: CheckedCall) -> Observation:
        """Run a checked call."""
        tools: dict[str, Callable[[str], Observation]] = {
            "wiki": self.wiki,
            "calc": self.calc,
            "ask_user": self.ask_user,
        }
        return tools[call.tool](call.argument)

    def wiki(self, title: str) -> Observation:
        """Return the text of a page."""
        self._called.append("wiki")
        text = self._pages.get(title, self._by_folded_title.get(folded(title)))
        return self._failed(UNKNOWN_PAGE) if text is None else Observation(text)

    def calc(self, expression: str) -> Observation:
        """Evaluate an arithmetic expression or a comparison."""
        self._called.append("calc")
        try:
            return Observation(calculate(expression))
        except CalculatorError as error:
            return self._failed(str(error))

    def ask_user(self, question: str) -> Observation:
        """Return the user's reply to a question."""
        self._called.append(ASK)
        if not question.strip():
            self.off_target += self.needs
            return self._failed(EMPTY_QUESTION)
        text, gave = self._user.reply(question)
        self.obtained |= gave
        self.off_target += self.needs and not gave
        return Observation(defused(text))

    def is_right(self, answer: str) -> bool:
        """Return whether `answer` is right by the task's answer rule, with or without asking."""
        return is_right(self.task, answer, self._answer, self._aliases)

    def _failed(self, sentence: str) -> Observation:
        self.errors += 1
        return Observation(sentence, error=True)


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
            f"{where} is of task '{row['task']}' in '{row['lang']}'; expected {', '.join(task_names())} in en or zh"
        )
    slot = row.get("slot")
    if row["needs_clarification"] and not (slot and slot.get("value") and slot.get("wanted")):
        raise RowError(f"{where} needs a clarification, but has no `slot` with the information that the user has")
    if not is_playable(row):
        raise RowError(f"{where} lacks {UNPLAYABLE}; add them (docs/how-to/own-source.md) or run `rc1 build-pool`")


MOST_TOKENS = 60
"""Most tokens of a question that the user considers; the scripted expert's questions have at most 21."""

_FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset(
        "a an the of to for in on at by with from and or but as is are was were be been do does did has have had it "
        "its that this these those there here which what who whom whose where when why how many much some one any all "
        "each every other you your i me my we us our they them their he him his she her exactly exact amount please "
        "tell say says said give name named know mean means meant can could would will shall should may might must if "
        "so then than not no yes just only also".split()
    ),
    "zh": frozenset(
        "你我他她它们的是了吗呢吧啊呀哪那这个条座本位艘只些什么多少几有没一指名字请问可以告诉知道要在和与也还就都说想用"
    ),
}
_IN_GENERAL: dict[Language, tuple[str, ...]] = {
    "en": (
        "what you mean", "what exactly you mean", "what do you mean", "what did you mean", "what exactly do you mean",
        "who do you mean", "which one do you mean", "which one you mean", "which one is meant", "what is meant",
        "is missing", "was missing", "is unclear", "left out", "leave out", "more specific",
    ),
    "zh": (
        "你 指 的 是 什 么", "你 指 什 么", "你 具 体 想 问", "什 么 意 思", "缺 了 什 么", "缺 什 么",
        "漏 了 什 么", "少 了 什 么", "没 说 清",
    ),
}  # fmt: skip
_EDGES = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True, slots=True)
class SimulatedUser:
    """Answers clarifying questions in the row's language; the same question always gets the same answer.

    It knows only the missing information, and gives it only when asked for it. It does not know the answer or the rest
    of the solution, so it cannot reveal more.

    Attributes:
        wanted: a noun phrase for the missing information; None if nothing is missing.
        replies: the row's two replies; the user can say nothing else.
    """

    lang: Language
    wanted: str | None
    replies: UserReplies

    def reply(self, question: str) -> tuple[str, bool]:
        """Return the user's reply, and whether it gives the missing information."""
        gives = self.replies["gives"]
        if self.wanted is not None and gives is not None and asks_for(question, self.wanted, self.lang):
            return gives, True
        return self.replies["otherwise"], False


def asks_for(question: str, wanted: str, lang: Language) -> bool:
    """Return whether `question` asks for what `wanted` names, by a fixed rule about words.

    1. A text longer than `MOST_TOKENS` does not.
    2. A general question does: it contains one of a few phrases, such as "what do you mean" or "is missing".
    3. A specific question does if it contains at least half of the content words of `wanted`. Function words do not
       count, and names do not count if other words are left: "what is Prahule's trade?" does not ask how many jars
       Prahule bought. Han characters count one by one.

    Known errors: "how many jars did Prahule sell?" counts as asking how many jars Prahule bought, and synonyms ("which
    man?" for a person) are not understood.
    """
    tokens = tokenize(question)
    if len(tokens) > MOST_TOKENS:
        return False
    words = f" {' '.join(tokens)} "
    if any(f" {phrase} " in words for phrase in _IN_GENERAL[lang]):
        return True
    content = _content(wanted, lang)
    shared = content & {_stem(token) for token in tokens}
    return bool(content) and 2 * len(shared) >= len(content)


def _content(wanted: str, lang: Language) -> frozenset[str]:
    """Return the stems of the content words of `wanted`, without names if other words are left."""
    words = [token for token in tokenize(wanted) if token not in _FUNCTION_WORDS[lang]]
    content = frozenset(_stem(word) for word in words)
    names = {_stem(token) for word in wanted.split() if _EDGES.sub("", word)[:1].isupper() for token in tokenize(word)}
    return content - names or content


def _stem(token: str) -> str:
    """Remove a possessive or plural ending."""
    token = re.sub(r"['’]s$", "", token)
    return token[:-1] if len(token) > 3 and token.endswith("s") else token
