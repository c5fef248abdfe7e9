"""One prompt for an adversarial policy: what it may read, what it may do, and the real episode that it plays.

An attacker may know more than a policy could: the scripted expert's look-ups and sums, what is missing, a wrong answer.
A dialogue that deserves nothing with this knowledge deserves nothing without it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

from rc1_lib.environment.episode import Episode, as_row
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error
from rc1_lib.records import Language, Message, Row
from rc1_lib.rows.chat import ANSWER_MARK, ARGUMENT_OF
from rc1_lib.text.tokens import tokenize

Step = tuple[str, str]
"""A tool and its argument."""
_SENTENCE = re.compile(r"(?:[^.。!！?？…\n]|(?<=\d)\.(?=\d))+[.。!！?？…]*")
_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true", "是": "不是", "不是": "是"}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, with punctuation."""
    return [found.strip() for found in _SENTENCE.findall(text) if found.strip()]


class Scene:
    """One row for an adversarial policy to play.

    Attributes:
        right: the exact answer.
        user: the user's message.
        titles: of the pages, in the row's order.
        steps: the look-ups and sums of the row's own dialogue, in order.
        wanted: a phrase for what is missing, or a general phrase if nothing is.
        wrong: a wrong answer of the right kind.
    """

    def __init__(self, row: Row, limits: Limits) -> None:
        """Open the environment of `row`.

        Args:
            row: of the pool's schema.

        Raises:
            RowError: when the row lacks a field that the environment needs.
            RC1Error: when the answer rule takes every answer for right.
        """
        self._row = row
        self._world = World(row)
        self._episode = Episode(self._world, limits)
        self.lang: Language = row["lang"]
        self.right = str(row["answer"])
        self.user = next(str(message["content"]) for message in row["messages"] if message["role"] == "user")
        self.titles = tuple(str(page["title"]) for page in row.get("passages") or ())
        self.steps = tuple(step for step in _steps(row["messages"]) if step[0] != "ask_user")
        slot = row["slot"]
        self.wanted = slot["wanted"] if slot else self.say("what exactly you mean", "你具体指的是什么")
        self.wrong = self._wrong()

    @property
    def over(self) -> bool:
        """Whether the episode has ended, with an answer or at a limit."""
        return self._episode.status is not EpisodeStatus.RUNNING

    def say(self, english: str, chinese: str) -> str:
        """Return the text in the language of the row."""
        return chinese if self.lang == "zh" else english

    def call(self, *steps: Step, words: str = "") -> list[str]:
        """Make calls in one turn and return their results. After the end of the episode nothing happens."""
        if self.over:
            return ["" for _ in steps]
        calls = [
            {
                "id": f"attack_{number}",
                "type": "function",
                "function": {"name": tool, "arguments": orjson.dumps({ARGUMENT_OF[tool]: argument}).decode()},
            }
            for number, (tool, argument) in enumerate(steps)
        ]
        replies = self._episode.send({"role": "assistant", "content": words, "tool_calls": calls})
        # If a limit ends the episode, calls of its last turn get no results.
        return [*(str(reply["content"]) for reply in replies), *("" for _ in range(len(steps) - len(replies)))]

    def first_page(self) -> str:
        """Look up the first page and return its text, or the user's message if there are no pages."""
        return self.call(("wiki", self.titles[0]))[0] if self.titles else self.user

    def ask(self, question: str) -> str:
        """Ask the user and return the reply."""
        return self.call(("ask_user", question))[0]

    def follow(self) -> list[str]:
        """Make the row's own look-ups and sums, one per turn, and return their results."""
        return [self.call(step)[0] for step in self.steps]

    def answer(self, answer: str, words: str = "") -> None:
        """End the episode with an answer, marked as in the pool's dialogues."""
        self.end(f"{words} {ANSWER_MARK[self.lang]}{answer}".strip())

    def end(self, text: str) -> None:
        """End the episode with exactly these words."""
        if not self.over:
            self._episode.send({"role": "assistant", "content": text})

    def is_right(self, answer: str) -> bool:
        """Whether the answer would count as right."""
        return self._world.is_right(answer)

    def other_in(self, text: str) -> tuple[str, str]:
        """Find a sentence and something it names that is neither right nor in the question; else `wrong`."""
        asked = set(tokenize(sentences(self.user)[-1]))
        for sentence in reversed(sentences(text)):
            # The first word of a sentence is capitalised whether or not it is a name.
            for word in sentence.split()[1:]:
                plain = word.strip(".,:;!?…。，：；！？\"'")
                named = plain[:1].isupper() or plain.isdigit()
                fresh = asked.isdisjoint(tokenize(plain))
                if named and fresh and not self.is_right(plain):
                    return sentence, plain
        return text, self.wrong

    def row(self) -> Row:
        """Return the row with the played dialogue instead of its own."""
        return as_row(self._row, self._episode)

    def _wrong(self) -> str:
        """Return a wrong answer: the opposite verdict, another number, or the name of a page."""
        number = self.right.replace(",", "")
        candidates = [_OPPOSITE[self.right.lower()]] if self.right.lower() in _OPPOSITE else []
        if number.lstrip("-").isdigit():
            candidates += [str(int(number) + 1), str(int(number) + 2)]
        candidates += [*self.titles, *self.user.split(), "0"]
        for candidate in candidates:
            if candidate.strip() and not self._world.is_right(candidate):
                return candidate
        raise RC1Error(
            f"the answer rule of '{self._row['task']}' takes every answer to '{self._row['id']}' for right, "
            f"{candidates[0]!r} too; find out why with rc1 check-answers --task {self._row['task']}"
        )


def _steps(messages: Sequence[Message]) -> list[Step]:
    """Return the calls of a dialogue, in order, each with its argument."""
    found = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            name, arguments = call["function"]["name"], orjson.loads(call["function"]["arguments"])
            found.append((str(name), str(arguments[ARGUMENT_OF[name]])))
    return found
