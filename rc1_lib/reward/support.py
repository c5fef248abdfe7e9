"""Does the answer follow from what the user and the tools said: the rule dimensions that read a dialogue's evidence.

They see messages and nothing else. What they cannot know: which sign a sum should have taken, which way round a
comparison was asked about, whether a yes or no without a comparison is right, and whether a page that was read answers
the question or only speaks of the same things. A wrong answer from right steps looks supported; docs/reward.md says how
far each can be trusted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from rc1_lib.language.numerals import below_zero, numbers, operands
from rc1_lib.language.open_references import asks_quantity, is_open, refers_openly
from rc1_lib.language.quantities import counted
from rc1_lib.language.questions import QuestionKind, may_be_a_sum, question_kind
from rc1_lib.language.statements import (
    Mentions,
    Statement,
    groups,
    is_cut_off,
    mentions,
    names_in,
    reached,
    read_statements,
    says,
    sentences,
)
from rc1_lib.memo import of_short_texts
from rc1_lib.records import Message
from rc1_lib.reward.sums import Worked, came_to, chosen_side, worked
from rc1_lib.rows.counts import ASK
from rc1_lib.scoring.economy import brevity, economy, is_verdict, pieces
from rc1_lib.scoring.transcript import CALC, Call, Transcript, read
from rc1_lib.text import tokenize

LONGEST_ANSWER = 10
"""Tokens of a definite answer; more is an essay, or a list of guesses."""
PIECES = 2.0
"""Pieces of evidence in the words before the answer after which 63 % of their worth is reached."""
ONLY_SAID = 0.5
"""What a quantity is worth that the user's own message names, where a quantity is asked for: it is seldom that."""
HALF_TOLD = 0.5
"""What a bare yes or no is worth that what was read does not bear out."""
ONE_NUMBER = 0.5
"""What a sum of a single number that was told is worth, as `7 * n`, and a comparison with the question's own number."""
UNMARKED = 0.5
"""The most that a message without a mark for its answer is worth: it commits itself to nothing definite."""
_NO_QUANTITIES = frozenset({"", "1"})
"""Numbers that are mostly no quantity: "one" of several things, and nothing."""
_YES, _NO = frozenset({"yes", "true", "是", "对"}), frozenset({"no", "false", "否", "不"})


@dataclass
class Grounds:
    """A dialogue, taken apart into a question, an answer and what might bear it out; each part is found once."""

    dialogue: Transcript

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Grounds:
        """Read a dialogue in chat format."""
        return cls(read(messages))

    @cached_property
    def supported(self) -> float:
        """Whether the one definite answer, of the kind asked for, follows from what was said and found; in [0, 1].

        A yes or no: agrees with the last comparison; without one, how much of what the question names is spoken of. A
        number: the last sum's, or one that a tool or a reply gave. A name: the question leads to a statement that holds
        it, and it is no mere stop on the way; of two things that are compared, both have to be known by a number.
        Sums and comparisons count by how far they bear on the question (`_bears`).
        A message without a mark for its answer: half the share of its names and numbers, beside those that the user
        gave, that were found.
        """
        if self._parted[1] is None:
            return self._found_share()
        if not self._tokens or len(self._tokens) > LONGEST_ANSWER:
            return 0.0
        yes, no = _verdict(self._tokens)
        kind = question_kind(self._question)
        if yes or no:
            fits = yes != no and kind in {QuestionKind.YES_OR_NO, QuestionKind.EITHER}
            return self._verdict_supported(yes=yes) if fits else 0.0
        if kind is QuestionKind.YES_OR_NO:
            return 0.0
        given = numbers(self._answer)
        if kind is QuestionKind.NUMBER and not given:
            return 0.0
        if given and len(self._tokens) <= 3:
            return self._number_supported(given)
        return self._name_supported()

    @cached_property
    def resolved(self) -> float:
        """1 where nothing was left open, or a question brought something new that was used later; else 0."""
        if not is_open(self.dialogue.asked, self.dialogue.pages):
            return 1.0
        known = pieces(self.dialogue.asked)
        for place, question, reply in self._exchanges:
            later = pieces(self.dialogue.final).union(
                *(pieces(call.said) for call in self.dialogue.calls if call.place > place)
            )
            if not (pieces(reply) - known - pieces(question)).isdisjoint(later):
                return 1.0
            known |= pieces(reply)
        return 0.0

    @cached_property
    def explained(self) -> float:
        """How much evidence the words before a supported answer give, less for needless length; in [0, 1].

        Evidence is what a reached statement or a sum says; words that stand in none of them count as length only.
        """
        if not self.supported:
            return 0.0
        evidence = [*self._led_to, *(f"{call.said} {call.result}" for call in self._sums)]
        known = {piece for text in evidence for piece in pieces(text)}
        before = self._parted[0]
        worth = self.supported * (1.0 - math.exp(-len(pieces(before) & known) / PIECES))
        return worth * brevity(len(tokenize(before)) + len(self._tokens))

    @cached_property
    def direct(self) -> float:
        """How economical the calls were that led to a supported answer; in [0, 1], 0 where nothing supports it."""
        return economy(self.dialogue, self.supported) if self.supported else 0.0

    def _verdict_supported(self, *, yes: bool) -> float:
        if self._compared:
            agrees = _verdict(tokenize(self._compared[-1].result))[0] == yes
            return self._comparison_bears(worked(self._to_comparison, self._numbers_told)) if agrees else 0.0
        asked = self._question_mentions
        return self._spoken_of * (HALF_TOLD if asked.names and self._is_doubtful(asked, yes=yes) else 1.0)

    @cached_property
    def _looked_into(self) -> float:
        """The share of what the question names, and the user's words beside it point to, that statements speak of.

        A title in a list and a sentence that breaks off point to a page; what it says is known once it was read.
        """
        asked = self._question_mentions.names
        beside = [text for place, text in enumerate(self._asked) if place != self._question_place]
        pointed = asked & mentions(" ".join(beside), self._names).names
        if not pointed:
            return self._spoken_of if asked else 1.0
        return len(pointed & self._told_of.names) / len(pointed)

    @cached_property
    def _spoken_of(self) -> float:
        """How much of what the question names, or of its pairs of Han characters, statements speak of; in [0, 1]."""
        asked = self._question_mentions
        # Half of the names is enough: the others mostly tell which thing of that name is meant.
        if asked.names:
            return min(1.0, 2 * len(asked.names & self._told_of.names) / len(asked.names))
        return min(1.0, 3 * len(asked.pairs & self._told_of.pairs) / len(asked.pairs)) if asked.pairs else 0.0

    def _is_doubtful(self, asked: Mentions, *, yes: bool) -> bool:
        """Whether numbers were left uncompared, or what was read does not join what is asked about as the answer does.

        "Yes" is mostly borne out where statements lead from one of these things to the other, "no" where none do.
        """
        if sum(bool(numbers(text)) for text in self._led_to) > 1:
            return True
        divided = len(groups(self._statements, asked.names))
        return divided > 0 and (divided == 1) != yes

    def _number_supported(self, given: Sequence[str]) -> float:
        if len(set(given)) > 1:
            return 0.0
        added_up = [call for call in self._sums if came_to(call) is not None]
        if added_up:
            made, result = worked(self._up_to(added_up[-1]), self._numbers_told), added_up[-1].result
            fits = made.result == given[0] and below_zero(self._answer) == below_zero(result)
            return self._sum_supported(made) if fits else 0.0
        if any(self._gives(text, given[0]) for text in self._found):
            return 1.0
        if not any(self._gives(text, given[0]) for text in self._stated):
            return 0.0
        linked = any(self._gives(text, given[0]) for text in self._led_to)
        return (ONLY_SAID if asks_quantity(self._question) else 1.0) * linked

    def _gives(self, text: str, number: str) -> bool:
        """Whether a text says the answer's number, with the sign that it has there."""
        return number in numbers(text) and (number in below_zero(text)) == (number in below_zero(self._answer))

    def _sum_supported(self, made: Worked) -> float:
        """Of a sum that bears on the question, the share of what was told of that which it is made of."""
        if made.is_idle or not may_be_a_sum(self._question):
            return 0.0
        texts = [*self._stated, self._question, *(reply for _, _, reply in self._exchanges)]
        if len(self._sides) < 2:
            texts += self._led_to
        titles = {number for call in self._looked_up for number in operands(call.said)}
        share = self._bears(made, {number for text in texts for number in operands(text)} - titles)
        return share * (1.0 if len(made.bearing.intersection(self._numbers_told)) > 1 else ONE_NUMBER)

    def _comparison_bears(self, made: Worked) -> float:
        """As `_bears`, of the question's own numbers; less where these are compared with a single other one.

        Nothing where a single number decides, as in `a + b > a`.
        """
        if len(made.bearing) < 2:
            return 0.0
        own = operands(self._question)
        return self._bears(made, own) * (1.0 if len(made.bearing.difference(own)) > 1 else ONE_NUMBER)

    def _bears(self, made: Worked, at_hand: Collection[str]) -> float:
        """The share of numbers at hand that a sum is made of, and of names asked about that are spoken of.

        Nothing where a number of its own was never told, or where all are told of one of several things asked about.
        """
        met = sum(not side.isdisjoint(made.bearing) for side in self._sides)
        one_sided = len(self._sides) > 1 and met < 2
        if one_sided or not made.is_told(self._numbers_told) or made.mixes(counted([*self._found, *self._asked])):
            return 0.0
        return made.takes(set(at_hand) - _NO_QUANTITIES, self._numbers_told) * self._looked_into

    def _name_supported(self) -> float:
        holding = [text for text in self._told if says(text, self._tokens)]
        if self._compared:
            return self._named_by_comparison({number for text in holding for number in numbers(text)})
        if says(self._question, self._tokens):
            return float(self._chosen([text for text in holding if numbers(text)]))
        if any(tokenize(call.said) == self._tokens for call in self._looked_up):
            return 0.0
        return float(any(says(text, self._tokens) for text in self._led_to))

    def _named_by_comparison(self, own: Set[str]) -> float:
        """Of an answer that has a number of the last comparison; half where the verdict speaks for the other side."""
        made = worked(self._to_comparison, self._numbers_told)
        better = chosen_side(self._to_comparison, self._numbers_told)
        if own.isdisjoint(made.bearing):
            return 0.0
        return self._comparison_bears(made) * (HALF_TOLD if better and own.isdisjoint(better) else 1.0)

    def _chosen(self, holding: Sequence[str]) -> bool:
        """Whether something that the question names was chosen by a number, against another that it names."""
        asked, own = self._question_mentions, mentions(self._answer, self._names)
        others = [
            statement.spoken
            for statement in self._statements
            if numbers(statement.text) and not says(statement.text, self._tokens)
        ]
        beside = Mentions(asked.names - own.names, asked.pairs - own.pairs)
        return bool(holding) and any(other.touches(beside.names, beside.pairs) for other in others)

    def _found_share(self) -> float:
        names = names_in([self.dialogue.asked, *self._found, self.dialogue.final])
        told, given = _particulars([self.dialogue.final], names), _particulars([self.dialogue.asked], names)
        new = told - given
        return UNMARKED * len(new & _particulars(self._found, names)) / len(new) if new else 0.0

    @cached_property
    def _parted(self) -> tuple[str, str | None]:
        return self.dialogue.parted

    @cached_property
    def _answer(self) -> str:
        return self._parted[1] or ""

    @cached_property
    def _tokens(self) -> list[str]:
        return tokenize(self._answer)

    @cached_property
    def _asked(self) -> list[str]:
        return sentences(self.dialogue.asked)

    @cached_property
    def _question_place(self) -> int:
        marked = [place for place, text in enumerate(self._asked) if text.endswith(("?", "？"))]
        return marked[-1] if marked else len(self._asked) - 1

    @cached_property
    def _question(self) -> str:
        return self._asked[self._question_place] if self._asked else ""

    @cached_property
    def _stated(self) -> list[str]:
        """What the user says beside the question, without what breaks off."""
        beside = (text for place, text in enumerate(self._asked) if place != self._question_place)
        return [text for text in beside if not is_cut_off(text)]

    @cached_property
    def _looked_up(self) -> list[Call]:
        return [call for call in self.dialogue.calls if call.name not in {ASK, CALC}]

    @cached_property
    def _sums(self) -> list[Call]:
        return [call for call in self.dialogue.calls if call.name == CALC]

    def _up_to(self, last: Call) -> list[Call]:
        return self._sums[: self._sums.index(last) + 1]

    @cached_property
    def _to_comparison(self) -> list[Call]:
        """The sums up to the last comparison, of which there is one."""
        return self._up_to(self._compared[-1])

    @cached_property
    def _told_of(self) -> Mentions:
        """All that statements speak of; lists say nothing."""
        told = [statement.spoken for statement in self._statements if not statement.lists]
        names, pairs = (one.names for one in told), (one.pairs for one in told)
        return Mentions(frozenset().union(*names), frozenset().union(*pairs))

    @cached_property
    def _numbers_told(self) -> Counter[str]:
        """How often each number was told; what is said in the same words again tells nothing more."""
        return Counter(number for text in {*self._found, *self._asked} for number in numbers(text))

    @cached_property
    def _sides(self) -> list[frozenset[str]]:
        """The numbers told of each group of things asked about; groups of which none is told are left out."""
        told = [
            [statement.text for statement in self._statements if not group.isdisjoint(statement.spoken.names)]
            for group in groups(self._statements, self._question_mentions.names)
        ]
        # Chinese names are not known from other words, but titles are.
        told = told or [[call.result] for call in self._looked_up if says(self._question, tokenize(call.said))]
        sides = [frozenset(number for text in texts for number in numbers(text)) for texts in told]
        return [side for side in sides if side]

    @cached_property
    def _compared(self) -> list[Call]:
        return [call for call in self._sums if is_verdict(call)]

    @cached_property
    def _exchanges(self) -> list[tuple[int, str, str]]:
        """Place, question and reply of every question to the user."""
        called = [(call.place, call.said, call.result) for call in self.dialogue.calls if call.name == ASK]
        spoken = self.dialogue.spoken
        plain = [
            (place, text, spoken[place + 1][1])
            for place, (role, text) in enumerate(spoken[:-1])
            if role == "assistant" and spoken[place + 1][0] == "user"
        ]
        return sorted(called + plain)

    @cached_property
    def _found(self) -> list[str]:
        """What look-ups and replies gave, sentence by sentence.

        A sentence of a page says something of the page's title, if that was named before: by the user or on a page.
        Who looks up what nobody named, as an answer of his own, is told of nothing.
        """
        pages: list[str] = []
        named = _run("\n".join(text for role, text in self.dialogue.spoken if role == "user"))
        for call in sorted(self.dialogue.calls, key=lambda call: call.place):
            if call.name == CALC:
                continue
            if call.name != ASK:
                title = f" ({call.said})" if _run(call.said) in named else ""
                pages += [text + title for text in sentences(call.result)]
            named += _run(call.result)
        return [*pages, *(text for _, _, reply in self._exchanges for text in sentences(reply))]

    @cached_property
    def _told(self) -> list[str]:
        return [*self._found, *self._stated]

    @cached_property
    def _names(self) -> frozenset[str]:
        return names_in([self._question, *self._told])

    @cached_property
    def _statements(self) -> list[Statement]:
        return read_statements(self._told, self._names)

    @cached_property
    def _question_mentions(self) -> Mentions:
        return mentions(self._question, self._names)

    @cached_property
    def _led_to(self) -> list[str]:
        """The statements that the question leads to; replies, and what speaks openly of somebody, are part of it."""
        asked = self._question_mentions
        openly = [statement.spoken for statement in self._statements if refers_openly(statement.text)]
        replied = [mentions(reply, self._names) for _, _, reply in self._exchanges]
        start = Mentions(
            asked.names.union(*(one.names for one in (*openly, *replied))),
            asked.pairs.union(*(one.pairs for one in openly)),
        )
        return reached(self._statements, start, apart=self._tokens)


def _particulars(texts: Sequence[str], names: frozenset[str]) -> set[str]:
    """The names and numbers of texts."""
    return {one for text in texts for one in (*numbers(text), *mentions(text, names).names)}


@of_short_texts(8192)
def _run(text: str) -> str:
    """The tokens of a text, between blanks: the run of a title stands in that of a text that names it."""
    return f" {' '.join(tokenize(text))} "


def _verdict(tokens: Sequence[str]) -> tuple[bool, bool]:
    """Whether these words say yes, and whether they say no."""
    negated = "".join(tokens) == "不是"
    return (not negated and not _YES.isdisjoint(tokens), not _NO.isdisjoint(tokens))
