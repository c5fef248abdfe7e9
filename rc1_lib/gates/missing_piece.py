"""Missing piece: what a row says is missing really is missing, and nothing else is.

A row needs a clarification exactly if its answer is not determined by all that the policy can reach, and is determined
once the user has replied. Two things judge it: an exact solver, where the row's source or task has one; and, for every
row, whether the withheld piece stands in a text that can be reached. A reader that never asks is the counter-check.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

import polars as pl
from scipy.special import betaincinv

from rc1_lib.checks import MAX_OFFENDERS, at_least, at_most, info
from rc1_lib.evidence import Evidence
from rc1_lib.gates.blind_reader import readings
from rc1_lib.gates.spec import GateSpec
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import Check, GateResult, Row
from rc1_lib.rows.closure import Closure, closure
from rc1_lib.rows.playable import is_playable
from rc1_lib.runtime.batches import gc_paused
from rc1_lib.sources.solvers import solver_of
from rc1_lib.task_specs import is_right
from rc1_lib.task_specs.quantities import as_quantity, figures, in_words
from rc1_lib.task_specs.reach import folded
from rc1_lib.task_specs.spec import Solver
from rc1_lib.task_specs.withheld_name import bare_name, names_it
from rc1_lib.text.tokens import holding_one_of

SolverOf = Callable[[Row], Solver | None]
"""Row -> the exact solver of its questions; None if there is none."""
BY_WORDS, BY_TASK = "needing rows recognised by words alone", "needing rows recognised by their task alone"
_READ = 500
"""Most prompts of a task that the reader answers: enough for an interval of a few percentage points."""
_SHOWN = 200
"""Characters of a text that an offender shows."""


class Fault(StrEnum):
    """What can be wrong with a row's missing piece, as reports name it."""

    REACHED = "needing rows whose missing piece can be reached"
    DETERMINED = "needing rows with one possible answer"
    UNDETERMINED = "complete rows whose text does not determine the answer"
    UNSETTLED = "needing rows whose answer the user's reply does not determine"


_ADVICE = {
    Fault.REACHED: "drop the rows listed, or do not list the page that gives the piece away (`Slot.hides`)",
    Fault.DETERMINED: "drop the rows listed, or mark them as complete: a policy that answers them without asking is "
    "right",
    Fault.UNDETERMINED: "drop the rows listed, or mark them as needing a clarification: nothing in them tells the "
    "answer",
    Fault.UNSETTLED: "let the user's reply name the missing piece (`user_replies.gives`), and the pages that it leads "
    "to name each other",
}
_NOT_LOOKED_AT = "needing rows not looked at, without slot or user replies"
_MAX_ROWS = 0.005
"""Largest share of a task's rows, in the worst file, with one kind of fault: names and figures may meet by accident."""
_MAX_BY_WORDS = 0.85
"""How much more often the words by which rows withhold something may stand in needing rows than in complete ones. At 1
a rule on these words asks where it should and nowhere else, so that nothing else would be learned."""
_TASK_ADVICE = (
    "a rule that asks in some tasks and never in the others tells needing rows from complete ones: withhold something "
    "in fewer rows of a task (pool.recipes.*.withhold), or give the others questions from which something can be "
    "withheld"
)
_FEWEST = 30
"""Fewest prompts of a file that need asking, and that do not, for a verdict on tasks."""
_RULES = 5
"""Number of the most common words that are tried alone."""
_WORDS_ADVICE = (
    "a rule on these words tells needing rows from complete ones: add questions from which something can be withheld, "
    "since only these are posed complete with the words too, or withhold nothing (pool.recipes.*.withhold: 0; a "
    "training then takes --no-evaluate)"
)
_READER_ADVICE = (
    "a policy that never asks is right more often than by chance: read the offenders, and find out what gives their "
    "answers away"
)


@dataclass(frozen=True, slots=True)
class _Played:
    """A prompt that needs a clarification, as the reader without `ask_user` gets it.

    Attributes:
        file: the row's file.
        reach: what can be reached.
        possible: the number of possible answers; 0 if there is no end of them, or no solver to say.
    """

    row: Row
    file: str
    reach: Closure
    possible: int


@dataclass(slots=True)
class _Tally:
    """What was found in the rows of one task.

    Attributes:
        looked: (fault, file) -> rows that could have it.
        at_fault: (fault, file) -> rows that have it.
        rows: what else is counted, by name.
        played: prompt -> its first row, of those that need a clarification.
        guessed: the same, of dialogues that answer without having asked.
        withheld: the words in place of what rows withhold.
        texts: file -> prompt -> whether it needs a clarification, and all that can be reached from it.
    """

    looked: Counter[tuple[Fault, str]] = field(default_factory=Counter)
    at_fault: Counter[tuple[Fault, str]] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    played: dict[str, _Played] = field(default_factory=dict)
    guessed: dict[str, _Played] = field(default_factory=dict)
    withheld: Counter[str] = field(default_factory=Counter)
    texts: dict[str, dict[str, tuple[bool, str]]] = field(default_factory=lambda: defaultdict(dict))


def missing_piece_gate(files: Mapping[str, pl.DataFrame], solver_of: SolverOf) -> GateResult:
    """Count the rows in which the missing piece is not missing, or something else is, by kind and task.

    Args:
        files: name of a file -> its rows. A share is that of the worst file, so that a small one counts too.
        solver_of: finds a row's exact solver. It gets the row without answer, labels and pages that cannot be reached.
    """
    with gc_paused():
        return _judged(files, solver_of)


def _judged(files: Mapping[str, pl.DataFrame], solver_of: SolverOf) -> GateResult:
    of_task: dict[str, _Tally] = defaultdict(_Tally)
    listed: list[Mapping[str, Any]] = []
    for name, rows in files.items():
        for record in rows.iter_rows(named=True):
            row = cast(Row, record)
            for fault, found, expected in _faults(row, name, solver_of(row), of_task[row["task"]]):
                if len(listed) < MAX_OFFENDERS:
                    listed.append(_offender(row, name, fault.value, found, expected))
    whole = (Fault.UNDETERMINED, Fault.UNSETTLED)  # a complete row with a solver has the first, a needing one the other
    looked = sum(n for tally in of_task.values() for (fault, _), n in tally.looked.items() if fault in whole)
    if not looked and (rows := pl.concat(files.values())).height and not rows["needs_clarification"].any():
        return GateResult("missing_piece", not_applicable="no row withholds anything, and none has a solver")
    checks = [at_least("rows looked at", looked, 1, "there are no rows")]
    for task, tally in of_task.items():
        if tally.rows[_NOT_LOOKED_AT]:
            seen = sum(n for (fault, _), n in tally.looked.items() if fault is Fault.UNSETTLED)
            checks.append(at_least(f"needing rows looked at[{task}]", seen, 1, "give them a slot and user replies"))
        checks += _shares(task, tally)
    read = [(task, *reader) for task, tally in of_task.items() for reader in _readers(tally)]
    for task, name, answers, played in read:
        # Each reader's interval is so wide that all of them together are right with confidence `CONFIDENCE`.
        right = [one for one, answer in zip(played, answers, strict=True) if _is_right(one.row, answer)]
        check = _against_chance(f"{name}, low end[{task}]", len(right), played, 1 - (1 - CONFIDENCE) / len(read))
        checks += [check, info(f"{name}, share of {len(played)} prompts[{task}]", len(right) / len(played))]
        if not check.passed:
            listed += [_offender(one.row, one.file, name, one.row["answer"], "a wrong answer") for one in right]
    for task, tally in of_task.items():
        checks += _by_words(task, tally)
    checks += _by_task(list(of_task.values()))
    for task, tally in of_task.items():
        checks += [info(f"{name}[{task}]", count) for name, count in sorted(tally.rows.items())]
    return GateResult("missing_piece", tuple(checks), offenders=tuple(listed[:MAX_OFFENDERS]))


def _shares(task: str, tally: _Tally) -> Iterator[Check]:
    for fault in Fault:
        shares = [tally.at_fault[fault, file] / n for (kind, file), n in tally.looked.items() if kind is fault]
        if shares:
            yield at_most(f"{fault}, share[{task}]", max(shares), _MAX_ROWS, _ADVICE[fault])


def _faults(row: Row, file: str, solver: Solver | None, tally: _Tally) -> Iterator[tuple[Fault, str, str]]:
    """Yield each fault of a row with what was found and what was expected, and count everything in `tally`."""
    reach = closure(row)
    tally.rows["rows with a solver" if solver else "rows without a solver"] += 1
    seen = as_seen(row, reach)
    possible = solver(seen, reach) if solver else None
    text = "\n".join((reach.prompt, *reach.pages.values()))
    if not row["needs_clarification"]:
        tally.texts[file][reach.prompt] = False, text
        if solver:
            wrong = not _is_gold(row, possible)
            yield from _counted(tally, Fault.UNDETERMINED, file, wrong, _in_words(possible), row["answer"])
        return
    slot = row.get("slot")
    if not slot or not is_playable(row):
        tally.rows[_NOT_LOOKED_AT] += 1
        return
    tally.rows[f"needing rows, the piece {slot.get('way') or 'gone'}"] += 1
    tally.withheld[slot.get("vague") or ""] += 1
    tally.texts[file][reach.prompt] = True, text
    if solver:
        found = _in_words(possible)
        yield from _counted(tally, Fault.DETERMINED, file, possible is not None and len(possible) < 2, found, "several")
    if not (solver and (slot.get("way") == "ambiguous" or as_quantity(slot["value"]))):
        place = _place(slot["value"], seen, reach)
        yield from _counted(tally, Fault.REACHED, file, bool(place), place, f"nowhere '{slot['value']}'")
    replies = row.get("user_replies")
    reply = (replies["gives"] if replies else None) or ""
    if solver:
        told = closure(row, reply)
        settled = solver(as_seen(row, told), told)
        found, expected = f"{reply} -> {_in_words(settled)}", row["answer"]
        yield from _counted(tally, Fault.UNSETTLED, file, not _is_gold(row, settled), found, expected)
    else:
        quantity = as_quantity(slot["value"])
        named = quantity in figures(reply) if quantity else names_it(slot["value"], reply)
        yield from _counted(tally, Fault.UNSETTLED, file, not named, reply, f"a reply that names '{slot['value']}'")
    # Other dialogues about the same prompt tell nothing new.
    played = _Played(row, file, reach, len(possible or ()))
    tally.played.setdefault(reach.prompt, played)
    if not row["asked"]:
        tally.guessed.setdefault(reach.prompt, played)


def _counted(
    tally: _Tally, fault: Fault, file: str, at_fault: bool, found: str, expected: str
) -> Iterator[tuple[Fault, str, str]]:
    tally.looked[fault, file] += 1
    tally.at_fault[fault, file] += at_fault
    if at_fault:
        yield fault, found, expected


def as_seen(row: Row, reach: Closure) -> Row:
    """Return the row with nothing but what the policy can see, so that no solver can use answer or labels.

    The missing piece is in it only if the user's reply, if taken into account, names it.
    """
    posed, slot = row["posed"], row.get("slot")
    told = slot is not None and reach.reply is not None and slot["value"] in reach.reply
    return {
        **row,
        "messages": [{"role": "user", "content": reach.prompt}],
        "posed": {**posed, "reason": ""},
        "question": posed["ask"],
        "support": list(posed["quoted"]),
        "passages": [{"title": title, "text": text} for title, text in reach.pages.items()],
        "answer": "",
        "aliases": None,
        "slot": slot if told else None,
        "user_replies": None,
        "needs_clarification": False,
        "asked": 0,
        "final": "",
        "solved": False,
        "lucky": False,
    }


def _place(value: str, seen: Row, reach: Closure) -> str:
    """Return where a withheld value can be reached; empty if nowhere."""
    quantity, name = as_quantity(value), bare_name(value)
    texts = {"the prompt": reach.prompt, **{f"page '{title}'": text for title, text in reach.pages.items()}}
    if opened := [f"page '{title}'" for title in reach.pages if folded(title) in (folded(name), folded(value))]:
        return opened[0]
    if quantity is None:
        return next((place for place, text in texts.items() if names_it(name, text)), "")
    titles = sorted(reach.pages, key=len, reverse=True)
    for place, text in texts.items():
        for title in titles:
            text = text.replace(title, " ")  # "Story train 12" is a name
        if quantity in figures(text):
            return place
    told = "\n".join((seen["posed"]["ask"], *seen["posed"]["quoted"], *reach.pages.values()))
    return "a number in words" if quantity in in_words(told) else ""


def _is_gold(row: Row, possible: frozenset[str] | None) -> bool:
    return possible is not None and len(possible) == 1 and _is_right(row, next(iter(possible)))


def _is_right(row: Row, answer: str) -> bool:
    return is_right(row["task"], answer, row["answer"], tuple(row.get("aliases") or ()))


def _in_words(possible: frozenset[str] | None) -> str:
    if possible is None:
        return "any number of possible answers"
    return ", ".join(sorted(possible)) or "no possible answer"


def _readers(tally: _Tally) -> Iterator[tuple[str, list[str], list[_Played]]]:
    """Yield each reader without `ask_user`: its name, its answers, and the prompts that it answers."""
    if played := list(tally.played.values())[:_READ]:
        rows, reaches = [one.row for one in played], [one.reach for one in played]
        answers = readings(rows, reaches, lambda row: row["answer"] in ("yes", "no"))
        yield "right without asking, reader of all texts", answers, played
    if guessed := list(tally.guessed.values()):
        yield "right without asking, recorded dialogues", [one.row["final"] for one in guessed], guessed


def _against_chance(name: str, right: int, played: Sequence[_Played], confidence: float) -> Check:
    """Check that the low end of the share of right answers is not above chance.

    The interval is Clopper's and Pearson's (1934). Chance is the share of the best constant answer, or the mean of one
    over the number of possible answers if that is larger.
    """
    n = len(played)
    low = float(betaincinv(right, n - right + 1, (1 - confidence) / 2)) if right else 0.0
    constant = max(Counter(one.row["answer"] for one in played).values()) / n
    chance = max(constant, sum(1 / one.possible for one in played if one.possible) / n)
    return at_most(name, low, chance, _READER_ADVICE)


def _by_words(task: str, tally: _Tally) -> Iterator[Check]:
    """Yield the check that words alone do not tell which rows need a clarification, if a file has rows of both kinds.

    All words by which rows withhold something are tried together, and the most common ones alone: a word that stands
    everywhere would hide the others. The low end of their share in needing rows minus the high end of that in complete
    ones decides, so that a few rows fail nothing.
    """
    rules = [list(tally.withheld), *([word] for word, _ in tally.withheld.most_common(_RULES))]
    found = [shares for of_file in tally.texts.values() for shares in _apart(of_file.values(), rules)]
    if found:
        apart, needing, complete = max(found)
        yield at_most(f"{BY_WORDS}, low end[{task}]", apart, _MAX_BY_WORDS, _WORDS_ADVICE)
        yield info(f"the words in needing rows, in complete ones, shares[{task}]", f"{needing:.3f}, {complete:.3f}")


def _by_task(tallies: Sequence[_Tally]) -> Iterator[Check]:
    """Yield the check that the task alone does not tell which rows need a clarification, if there are several tasks.

    The best such rule asks in the tasks that have more of the needing rows than of the complete ones. The figure is the
    worst file's, of those that have rows of both kinds.
    """
    found = []
    for file in {name for tally in tallies for name in tally.texts}:
        kinds = [[needs for needs, _ in tally.texts[file].values()] for tally in tallies if file in tally.texts]
        needing, complete = ([sum(needs is kind for needs in task) for task in kinds] for kind in (True, False))
        if min(sum(needing), sum(complete)) >= _FEWEST:
            shares = zip(needing, complete, strict=True)
            found.append(sum(max(0.0, n / sum(needing) - m / sum(complete)) for n, m in shares))
    if found and len(tallies) > 1:
        yield at_most(BY_TASK, max(found), _MAX_BY_WORDS, _TASK_ADVICE)


def _apart(texts: Iterable[tuple[bool, str]], rules: Sequence[Sequence[str]]) -> Iterator[tuple[float, float, float]]:
    """Yield for each rule how far apart its shares are, at least, and its shares in needing and in complete rows."""
    frame = pl.DataFrame(list(texts), schema={"needs": pl.Boolean, "text": pl.String}, orient="row")
    n, m = int(frame["needs"].sum()), int((~frame["needs"]).sum())
    tail = (1 - CONFIDENCE) / 2
    for words in rules if n and m else ():
        held = holding_one_of(frame["text"], words)
        needing, complete = int((held & frame["needs"]).sum()), int((held & ~frame["needs"]).sum())
        low = float(betaincinv(needing, n - needing + 1, tail)) if needing else 0.0
        high = float(betaincinv(complete + 1, m - complete, 1 - tail)) if complete < m else 1.0
        yield low - high, needing / n, complete / m


def _offender(row: Row, file: str, reason: str, found: str, expected: str) -> Mapping[str, Any]:
    return {
        "id": row["id"], "task": row["task"], "file": file, "found": found[:_SHOWN], "expected": expected[:_SHOWN],
        "reason": reason,
    }  # fmt: skip


def judge_files(evidence: Evidence, names: Sequence[str]) -> GateResult:
    """Check that in the rows of the files `names` the missing piece is missing, and nothing else.

    Raises:
        RC1Error: when a file cannot be read.
    """
    return missing_piece_gate({name: evidence.rows(name) for name in names}, solver_of)


SPEC = GateSpec(
    "missing_piece", "is what is missing really missing, and nothing else", ("pool", "shadow", "takes"),
    lambda e, _: judge_files(e, ("pool", "shadow", "takes")),
)  # fmt: skip
