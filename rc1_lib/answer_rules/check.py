"""Test an answer rule with known-right spellings and known-wrong answers of golds, and count its errors."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import betaincinv

from rc1_lib.answer_rules.golds import Form, Gold, Kind, Sample
from rc1_lib.answer_rules.spellings import right_answers
from rc1_lib.answer_rules.wrong_answers import wrong_answers
from rc1_lib.numbers.uncertainty import CONFIDENCE

MAX_WRONG_PAID = 0.005
"""Largest share of wrong answers that a rule may accept: what is paid wrongly is learned."""
MAX_RIGHT_REFUSED = 0.02
"""Largest share of right spellings that a rule may reject, which only costs reward."""
Rule = Callable[[str, str, Sequence[str]], object]
"""Takes (given answer, exact answer, aliases) and returns something true if the given answer is right."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of the tested answers were judged wrongly.

    Attributes:
        failed: wrong ones that it accepted, or right ones that it rejected.
        low: lower end of the Clopper-Pearson interval (1934) of the share; NaN if nothing was tested.
        high: upper end.
    """

    asked: int
    failed: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share of failures; NaN if nothing was tested, so that no check passes on it."""
        return self.failed / self.asked if self.asked else math.nan


@dataclass(frozen=True, slots=True)
class KindReport:
    """A rule's results on one kind of answers."""

    kind: Kind
    right: bool
    rate: Rate


@dataclass(frozen=True, slots=True)
class Offence:
    """One answer that was judged wrongly, or on which the rule raised an error (`error`)."""

    kind: str
    right: bool
    given: str
    gold: Gold
    error: str = ""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """The findings on a rule.

    Attributes:
        form: the assumed form of the golds.
        distinct: number of different golds.
        used: golds from which answers were made.
        kinds: the kinds that applied to some gold, in the libraries' order: right spellings, then wrong answers.
        wrong_paid: over all kinds of wrong answers.
        right_refused: over all kinds of right spellings.
        broken: answers on which the rule raised; they count as rejected.
        offences: every answer judged wrongly.
    """

    form: Form
    distinct: int
    used: int
    kinds: tuple[KindReport, ...]
    wrong_paid: Rate
    right_refused: Rate
    broken: int
    offences: tuple[Offence, ...]

    @property
    def fault(self) -> str:
        """What is wrong with the rule for these golds, in words, with an example; empty if nothing is."""
        for right, rate, most in (
            (False, self.wrong_paid, MAX_WRONG_PAID),
            (True, self.right_refused, MAX_RIGHT_REFUSED),
        ):
            if rate.share <= most:
                continue
            done, kind = ("rejects", "right spellings") if right else ("accepts", "wrong answers")
            one = next((offence for offence in self.offences if offence.right is right), None)
            example = f", such as {one.given[:60]!r} for {one.gold.answer[:60]!r}" if one else ""
            return f"it {done} {rate.failed} of {rate.asked} {kind} ({most:.1%} may be){example}"
        paid = [name for name, (_, paid) in self.never().items() if paid]
        return f"it accepts {paid[0]}" if paid else ""

    def never(self) -> dict[str, tuple[int, int]]:
        """Count tested and accepted answers by check, for kinds that a rule must never accept."""
        found: dict[str, tuple[int, int]] = {}
        for report in self.kinds:
            if report.kind.never:
                asked, paid = found.get(report.kind.never, (0, 0))
                found[report.kind.never] = (asked + report.rate.asked, paid + report.rate.failed)
        return found


def ask_rule(rule: Rule, sample: Sample) -> RuleReport:
    """Test a rule with all kinds of answers to golds of one task, each kind at most once per gold.

    The intervals treat each answer as one draw. Kinds are chosen by hand, so a rate describes these kinds and does not
    estimate errors on what models write.

    Args:
        rule: called as `rule(given, gold, aliases)`.
    """
    form, used = sample.form, sample.golds
    asked: dict[tuple[bool, Kind], list[bool]] = defaultdict(list)
    offences, broken = [], 0
    for at, gold in enumerate(used):
        others = [*used[at + 1 :], *used[:at]]
        answers = [(True, *answer) for answer in right_answers(gold, form)]
        answers += [(False, *answer) for answer in wrong_answers(gold, others, form)]
        for right, kind, given in answers:
            paid, error = _paid(rule, given, gold)
            broken += bool(error)
            asked[right, kind].append(paid is not right)
            if error or paid is not right:
                offences.append(Offence(kind.name, right, given, gold, error))
    kinds = tuple(KindReport(kind, right, _rate(failed)) for (right, kind), failed in asked.items())
    wrong_paid, right_refused = (
        _rate([failure for (right, _), failed in asked.items() if right is wanted for failure in failed])
        for wanted in (False, True)
    )
    return RuleReport(form, sample.distinct, len(used), kinds, wrong_paid, right_refused, broken, tuple(offences))


def _paid(rule: Rule, given: str, gold: Gold) -> tuple[bool, str]:
    try:
        return bool(rule(given, gold.answer, gold.aliases)), ""
    # A rule may be custom code. During training its exception would end the run, so it is caught and named here.
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def _rate(failed: Sequence[bool]) -> Rate:
    n, k, tail = len(failed), sum(failed), (1 - CONFIDENCE) / 2
    if not n:
        return Rate(0, 0, math.nan, math.nan)
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Rate(n, k, low, high)
