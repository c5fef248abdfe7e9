"""Consistency: the rows' content is true. Every dialogue is played again, and every row compared with its question.

The other gates check the rows' form. Here each call is made again in the row's own environment, each verdict is worked
out again, and the question, its gold answer and its pages are compared with the source. Texts may not contain markers
of the chat format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import polars as pl

from rc1_lib.checks import MAX_OFFENDERS, at_most, info
from rc1_lib.environment.markers import has_marker
from rc1_lib.environment.replay import inconsistencies, sums
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec
from rc1_lib.pool.as_asked import Questions, as_asked, known_questions, pages_of
from rc1_lib.pool.as_worded import as_worded, language
from rc1_lib.pool.templates import Pack, load_pack
from rc1_lib.records import Check, GateResult, Row
from rc1_lib.rows.inconsistency import Inconsistency, Kind
from rc1_lib.rows.playable import unplayable
from rc1_lib.rows.spoken import places
from rc1_lib.runtime.batches import gc_paused
from rc1_lib.task_specs import is_right, task_spec

_ADVICE = "drop the rows listed, or build the pool again with --rebuild: the builder writes no such rows"
_MARK_ADVICE = "remove or rewrite the questions listed in the source: such a mark would end a message or begin a call"
_MAX_OTHER_SUMS = 0.2
"""Largest share of word problems whose last calculation is not the gold answer: public annotations have errors."""
_SHOWN = 200
"""Characters of the found and the expected value that an offender shows."""


def consistency_gate(files: Mapping[str, pl.DataFrame], questions: Questions, pack: Pack) -> GateResult:
    """Count the rows whose content a replay contradicts, by kind.

    Args:
        files: name of a file -> its rows.
        questions: the questions that the rows were made from; empty if the source is not available.
        pack: the templates that word the rows.
    """
    with gc_paused():
        return _judged(files, questions, pack)


def _judged(files: Mapping[str, pl.DataFrame], questions: Questions, pack: Pack) -> GateResult:
    rows_with: Counter[Kind] = Counter()
    listed: list[Mapping[str, Any]] = []
    reckoned = elsewhere = 0
    lent = pages_of(questions)
    for name, rows in files.items():
        for record in rows.iter_rows(named=True):
            row = cast(Row, record)
            found = list(_found(row, questions, lent, pack))
            rows_with.update({inconsistency.kind for inconsistency in found})
            if len(listed) < MAX_OFFENDERS:
                listed += [_offender(name, row, inconsistency) for inconsistency in found]
            if task_spec(row["task"]).word_problem and (of_reason := sums(row)):
                reckoned += 1
                elsewhere += not is_right(row["task"], of_reason[-1][1], row["answer"], tuple(row["aliases"] or ()))
    advice = {Kind.MARK: _MARK_ADVICE}
    checks = [at_most(f"rows with {kind}", rows_with[kind], 0, advice.get(kind, _ADVICE)) for kind in Kind]
    played = sum(rows.height for rows in files.values())
    checks.append(_sums(reckoned, elsewhere))
    checks.append(info("rows compared with their source", played if questions else 0))
    checks.append(info("rows whose user's replies are not recorded", sum(map(unplayable, files.values()))))
    return GateResult("consistency", tuple(checks), offenders=tuple(listed[:MAX_OFFENDERS]))


def _found(row: Row, questions: Questions, lent: Mapping[str, set[str]], pack: Pack) -> Iterator[Inconsistency]:
    for where, text in places(row):
        if has_marker(text):
            yield Inconsistency(Kind.MARK, where, text, "only words")
    yield from inconsistencies(row)
    question = questions.get((row["source"], row["source_id"]))
    if question is not None:
        yield from as_asked(row, question, lent)
    elif questions:
        named = f"{row['source']}: {row['source_id']}"
        yield Inconsistency(Kind.SOURCE, "source_id", named, "a question of the source")
    if question is None or question.dialogue is not None:
        yield from language(row)
    if question is None or question.dialogue is None:
        yield from as_worded(row, pack)


def _sums(reckoned: int, elsewhere: int) -> Check:
    name = "word problems whose last sum is not the answer, share"
    if not reckoned:
        return info(name, None)
    advice = "their gold answers or their sums were altered: build the pool again with --rebuild, or check the source"
    return at_most(name, elsewhere / reckoned, _MAX_OTHER_SUMS, advice)


def _offender(name: str, row: Row, inconsistency: Inconsistency) -> Mapping[str, Any]:
    texts = (inconsistency.found, inconsistency.expected)
    # Starts shortly before the first difference: a page is much longer than the error in it.
    shorter = min(map(len, texts))  # if one text is the beginning of the other
    differ = next((at for at, marks in enumerate(zip(*texts, strict=False)) if len(set(marks)) > 1), shorter)
    start = max(0, differ - _SHOWN // 4)
    found, expected = (text[start : start + _SHOWN] for text in texts)
    return {
        "id": row["id"], "task": row["task"], "file": name, "where": inconsistency.where,
        "found": found, "expected": expected, "reason": inconsistency.kind.value,
    }  # fmt: skip


def judge_files(evidence: Evidence, names: Sequence[str]) -> GateResult:
    """Check that the rows of the files `names` contradict neither themselves nor their source.

    Raises:
        RC1Error: when a file, the source or the templates cannot be read.
    """
    # The source is not a file of the round; if it changed after the rows were made, `integrity` reports them as stale.
    run = evidence.run
    files = {name: evidence.rows(name) for name in names}
    questions, pack = known_questions(run.config, run.workspace), load_pack(evidence.path("templates"))
    return consistency_gate(files, questions, pack)


SPEC = GateSpec(
    "consistency", "is what the rows say true", ("pool", "shadow", "takes", "templates"),
    lambda e, _: judge_files(e, ("pool", "shadow", "takes")),
)  # fmt: skip
