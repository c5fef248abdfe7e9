"""The simulated user: it knows only the missing piece, and gives it only when asked for it.

It knows neither the answer nor anything else of the solution, so it cannot reveal more. A rule about words, the same
for every model and every run, decides what counts as asking for the piece:

1. A general question contains one of a few phrases, such as "what do you mean" or "is missing".
2. A question for the piece itself contains at least half of the content words of `Slot.wanted`. Function words do not
count, and names do not count if other words are left: "what is Prahule's trade?" does not ask how many jars Prahule
bought.
   Han characters count one by one.
3. A text longer than `MOST_TOKENS` asks for nothing in particular.

Known errors: "how many jars did Prahule sell?" counts as asking how many jars Prahule bought, and synonyms ("which
man?" for a person) are not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rc1_lib.records import Language, UserReplies
from rc1_lib.text.tokens import tokenize

MOST_TOKENS = 60
"""The longest question that the user considers, in tokens; the pool's scripted expert needs at most 21."""

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

    Attributes:
        lang: the language of the row.
        wanted: a noun phrase for the missing piece; None if nothing is missing.
        replies: the row's two replies, which are all that this user can say.
    """

    lang: Language
    wanted: str | None
    replies: UserReplies

    def reply(self, question: str) -> tuple[str, bool]:
        """What the user says, and whether it gave the missing piece."""
        gives = self.replies["gives"]
        if self.wanted is not None and gives is not None and asks_for(question, self.wanted, self.lang):
            return gives, True
        return self.replies["otherwise"], False


def asks_for(question: str, wanted: str, lang: Language) -> bool:
    """Whether `question` asks for what `wanted` names, by the rule of this module."""
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
    """The words of `wanted` that identify the piece: no function words, and no names if other words are left."""
    words = [token for token in tokenize(wanted) if token not in _FUNCTION_WORDS[lang]]
    content = frozenset(_stem(word) for word in words)
    names = {_stem(token) for word in wanted.split() if _EDGES.sub("", word)[:1].isupper() for token in tokenize(word)}
    return content - names or content


def _stem(token: str) -> str:
    """Singular and plural count as one word, and so do a name with and without its possessive."""
    token = re.sub(r"['’]s$", "", token)
    return token[:-1] if len(token) > 3 and token.endswith("s") else token
