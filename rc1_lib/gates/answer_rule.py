"""Answer rule: does the rule that decides success accept right answers in any spelling, and only those?

One function per task decides seven tenths of the training reward, or all of it. This gate tests it with spellings known
to be right and answers known to be wrong, all made from the pool's own gold answers (`rc1_lib.answer_rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from rc1_lib.answer_rules.check import MAX_RIGHT_REFUSED, MAX_WRONG_PAID, Offence, Rate, Rule, RuleReport, ask_rule
from rc1_lib.answer_rules.golds import MOST_GOLDS, Form, Gold, Sample, spread
from rc1_lib.checks import MAX_OFFENDERS, at_least, at_most, info
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.numbers.uncertainty import CONFIDENCE, CheckInterval
from rc1_lib.records import Check, GateResult, Task
from rc1_lib.task_specs import task_spec

GATE = "answer_rule"
MIN_KINDS = 20
"""Fewest kinds of right spellings, and of wrong answers, that must apply to a task's golds; with fewer, the rule is not
tried."""
MIN_GOLDS = 2
"""Fewest different golds of a task, except yes and no. With one, a rule that accepts another question's answer would go
unnoticed."""
MAX_ONE_GOLD = 0.8
"""Largest share of a task's source questions with one and the same gold: above it a policy that always says it has
nearly all of the reward, and no other gate sees it, since a constant is their measure of chance."""
_FEWEST = 30
"""Fewest source questions for that verdict: of a few all may have one answer by chance."""
_SHOWN = 300
"""Characters of an answer that an offender shows."""
_ADVICE = (
    "`rc1 check-answers` lists them: drop questions with a wrong gold answer, or fix the rule (the task's `is_right`; "
    "rc1_lib/answer_rules has tested rules)"
)


def answer_rule_gate(
    rows: pl.DataFrame,
    rule_of: Callable[[Task], Rule],
    most_golds: int = MOST_GOLDS,
) -> GateResult:
    """Check the rule of every task that has rows.

    Args:
        rule_of: maps a task's name to its rule.
        most_golds: maximum number of a task's gold answers that test answers are made from.
    """
    found = judged(reports_of(pool_golds(rows, most_golds), rule_of))
    return replace(found, checks=(*found.checks, *_constants(rows)))


def _constants(rows: pl.DataFrame) -> Iterator[Check]:
    """Check for each task that no single answer is right for nearly all of its source questions."""
    questions = rows.select("task", "source_id", "answer").unique()
    proportions = pl.col("answer").value_counts(normalize=True).struct["proportion"]
    most = questions.group_by("task").agg(pl.len(), share=proportions.max())
    for task, asked, share in most.sort("task").iter_rows():
        name = f"most frequent gold, share of questions[{task}]"
        advice = "a policy that always says it is paid nearly everywhere: add questions with other answers"
        yield at_most(name, share, MAX_ONE_GOLD, advice) if asked >= _FEWEST else info(name, share)


def reports_of(samples: Mapping[Task, Sample], rule_of: Callable[[Task], Rule]) -> dict[Task, RuleReport]:
    """Test every task's rule on the task's gold answers."""
    return {task: ask_rule(rule_of(task), sample) for task, sample in samples.items()}


def judged(reports: Mapping[Task, RuleReport]) -> GateResult:
    """Judge the reports on the tasks' rules."""
    checks = [check for task, report in reports.items() for check in _checks(task, report)]
    listed = [_offender(task, one) for task, report in reports.items() for one in _first_of_each_kind(report.offences)]
    return GateResult(GATE, tuple(checks), offenders=tuple(listed[:MAX_OFFENDERS]))


def pool_golds(rows: pl.DataFrame, most: int = MOST_GOLDS) -> dict[Task, Sample]:
    """Return an even sample of each task's different gold answers, with question and longest page of a row for each."""
    first = (
        rows.lazy().with_row_index("place").select("place", "task", "answer")
        .unique(["task", "answer"], keep="first", maintain_order=True).collect()
    )  # fmt: skip
    columns = [name for name in ("id", "answer", "aliases", "question", "passages") if name in rows.columns]
    found: dict[Task, Sample] = {}
    for (task,), part in sorted(first.partition_by("task", as_dict=True).items()):
        form, distinct, at = spread(part["answer"].to_list(), most)
        drawn = rows[part["place"].gather(at).to_list()].select(columns)
        found[str(task)] = Sample(form, distinct, tuple(_gold(row) for row in drawn.iter_rows(named=True)))
    return found


def _gold(row: Mapping[str, Any]) -> Gold:
    page = max((passage["text"] for passage in row.get("passages") or ()), key=len, default="")
    return Gold(row["answer"], tuple(row.get("aliases") or ()), row["question"], page, row["id"])


def _checks(task: Task, report: RuleReport) -> Iterator[Check]:
    for name, rate, most in (
        ("wrong answers paid, share", report.wrong_paid, MAX_WRONG_PAID),
        ("right answers refused, share", report.right_refused, MAX_RIGHT_REFUSED),
    ):
        # Yes and no have no further variants: all of them were tested.
        interval = None if report.form is Form.VERDICT else _interval(rate)
        yield at_most(f"{name}[{task}]", rate.share, most, _ADVICE, interval)
    for name, (asked, paid) in report.never().items():
        yield at_most(f"{name}[{task}]", paid, 0, f"{_ADVICE}; all {asked} such answers are wrong")
    yield at_most(
        f"answers at which the rule breaks[{task}]",
        report.broken,
        0,
        "a rule must accept any text as input; see the list",
    )
    for name, right in (("spellings", True), ("wrong answers", False)):
        kinds = sum(one.right is right for one in report.kinds)
        advice = "the gold answers allow too few kinds to test the rule: are they all the same?"
        yield at_least(f"kinds of {name} asked about[{task}]", kinds, MIN_KINDS, advice)
    different = f"different golds[{task}]"
    if report.form is Form.VERDICT:  # one verdict implies the other, which is tested too
        yield info(different, report.distinct)
    else:
        advice = "the task's questions have hardly any different answers: check the source"
        yield at_least(different, report.distinct, MIN_GOLDS, advice)
    yield info(f"form of the golds[{task}]", report.form.value)
    for one in report.kinds:
        if one.rate.failed:
            said = "refused" if one.right else "paid"
            yield info(f"{said}: {one.kind.name}, share[{task}]", one.rate.share)


def _interval(rate: Rate) -> CheckInterval:
    return CheckInterval(rate.low, rate.high, CONFIDENCE, rate.asked, "answers")


def _first_of_each_kind(offences: tuple[Offence, ...], most: int = 20) -> Iterator[Offence]:
    """Yield at most `most` offences of each kind, so that one kind does not fill the list."""
    seen: dict[tuple[bool, str], int] = {}
    for one in offences:
        count = seen[one.right, one.kind] = seen.get((one.right, one.kind), 0) + 1
        if count <= most:
            yield one


def _offender(task: Task, one: Offence) -> Mapping[str, Any]:
    verdict = "right, but rejected" if one.right else "wrong, but accepted"
    said = f"the rule broke: {one.error}" if one.error else verdict
    return {
        "id": one.gold.id, "task": task, "kind": one.kind, "given": one.given[:_SHOWN], "gold": one.gold.answer,
        "aliases": list(one.gold.aliases), "reason": f"{one.kind}: {said}",
    }  # fmt: skip


def _judge(evidence: Evidence, _: Round) -> GateResult:
    return answer_rule_gate(evidence.rows("pool"), lambda task: task_spec(task).is_right)


SPEC = GateSpec(GATE, "are right answers paid, and no others", ("pool",), _judge)
