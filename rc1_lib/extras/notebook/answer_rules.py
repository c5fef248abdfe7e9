"""Test any answer rule on gold answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.answer_rules.check import RuleReport
from rc1_lib.answer_rules.golds import gold_of, sample
from rc1_lib.config.thresholds import AnswerRuleGate
from rc1_lib.errors import RowError
from rc1_lib.extras.notebook.cards import Card, Shown
from rc1_lib.extras.notebook.verdicts import Verdicts
from rc1_lib.gates.answer_rule import judged, reports_of
from rc1_lib.run import published_config

_KINDS = {
    "kind": pl.String, "sentence": pl.String, "right": pl.Boolean, "asked": pl.Int64, "failed": pl.Int64,
    "share": pl.Float64, "low": pl.Float64, "high": pl.Float64,
}  # fmt: skip
_OFFENCES = {
    "kind": pl.String, "right": pl.Boolean, "given": pl.String, "gold": pl.String, "error": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class AnswerRuleCheck(Shown):
    """The findings on an answer rule.

    Attributes:
        report: the figures.
        verdict: of the gate `answer_rule`.
    """

    report: RuleReport
    verdict: Verdicts

    @property
    def passed(self) -> bool:
        """Whether every check of the gate passed."""
        return self.verdict.passed

    @property
    def kinds(self) -> pl.DataFrame:
        """One row per kind: `kind, sentence, right, asked, failed, share, low, high`, the worst first.

        `right` says whether answers of the kind are right; `failed` counts those refused if so, and those paid if not.
        """
        rows = [
            {
                "kind": one.kind.name, "sentence": one.kind.sentence, "right": one.right, "asked": one.rate.asked,
                "failed": one.rate.failed, "share": one.rate.share, "low": one.rate.low, "high": one.rate.high,
            }
            for one in self.report.kinds
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_KINDS).sort("share", descending=True, maintain_order=True)

    @property
    def offenders(self) -> pl.DataFrame:
        """One row per wrongly judged answer: `kind, right, given, gold, error`."""
        rows = [
            {"kind": one.kind, "right": one.right, "given": one.given, "gold": one.gold.answer, "error": one.error}
            for one in self.report.offences
        ]
        return pl.DataFrame(rows, schema=_OFFENCES)

    def card(self) -> Card:
        """The verdict, and the kinds on which the rule failed."""
        said = self.verdict.card()
        failed = self.kinds.filter(pl.col("failed") > 0).select("kind", "right", "asked", "failed", "share")
        return Card(f"{self.report.form.value}: {said.title}", said.lines, [failed])


def check_answer_rule(
    rule: Callable[[str, str, Sequence[str]], object],
    golds: pl.DataFrame | Sequence[str | Mapping[str, Any]],
    *,
    name: str = "rule",
    thresholds: AnswerRuleGate | None = None,
) -> AnswerRuleCheck:
    """Test a rule with right answers in many spellings and with wrong answers, like `rc1 check-answers`.

    Args:
        rule: called as `rule(given, gold, aliases)`; returns something true if the answer is right. If it raises, the
            answer counts as refused and the check fails.
        golds: gold answers as texts, or as mappings (or a frame's rows) with `answer` and optionally `aliases`,
            `question`, `page` (the longest text that the question comes with) and `id`. Their form is detected:
            numbers, yes and no, or else text.
        name: the rule's name in the verdict.
        thresholds: default: the published ones.

    Raises:
        RC1Error: if there are no gold answers, or they have another form.
    """
    found = []
    for place, one in enumerate(golds.iter_rows(named=True) if isinstance(golds, pl.DataFrame) else golds):
        try:
            found.append(gold_of(one))
        except ValueError as error:
            raise RowError(f"gold {place}: {error}") from None
    if not found:
        raise RowError("found no gold answers, expected at least one")
    gates = published_config().gates
    confidence = gates.shared.confidence
    reports = reports_of({name: sample(found)}, lambda _: rule, confidence)
    return AnswerRuleCheck(reports[name], Verdicts((judged(reports, thresholds or gates.answer_rule, confidence),)))
