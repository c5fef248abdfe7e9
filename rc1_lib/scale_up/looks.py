"""The checks before and after a size: growth, diversity, difficulty, and stability of the judge on its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rc1_lib.checks import equal
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate, not_applicable
from rc1_lib.gates.judge_stability import stability_gate
from rc1_lib.judge.judge import fresh_scores
from rc1_lib.records import PASSING, GateResult
from rc1_lib.rows.lines import foreign_lines
from rc1_lib.run import Run
from rc1_lib.scale_up.sizes import Step, sized

GROWTH, STABILITY = "growth", "judge_stability"
BEFORE = ("diversity", "difficulty", STABILITY)
"""The gates of the smaller size, evaluated again since days may have passed. The judge, which may cost money, is
last."""
AFTER = (GROWTH, *BEFORE)


@dataclass(frozen=True, slots=True)
class Look:
    """One evaluation of a size's gates.

    Attributes:
        size: number of rows that were checked.
        again: whether this is the check before the pool grows further.
        results: one verdict per gate, in order; the gates after a failed one wait for it.
    """

    size: int
    again: bool
    results: tuple[GateResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every gate was evaluated and passed."""
        names = BEFORE if self.again else AFTER
        return tuple(result.name for result in self.results if result.status in PASSING) == names

    @property
    def title(self) -> str:
        """The column title in reports: `1,000` or `1,000 again`."""
        return f"{self.size:,}{' again' if self.again else ''}"


def evaluate_gate(whole: Run, step: Step, name: str, *, again: bool) -> GateResult:
    """Evaluate one gate on the new size, or again on the smaller size.

    Args:
        step: the two sizes.
        name: one of `BEFORE` or `AFTER`.
        again: whether to check the smaller size.
    """
    run = sized(whole, step.smaller if again else step.size)
    if name == GROWTH:
        return _growth(whole, step)
    return _stability(run) if name == STABILITY else evaluate(name, Evidence(run), 1)


def unreached(results: Sequence[GateResult], names: Sequence[str]) -> list[GateResult]:
    """Return results for the gates that were not reached, naming the failed gate that they wait for."""
    return [GateResult(name, waits_for=f"{results[-1].name}, which failed") for name in names[len(results) :]]


def _growth(whole: Run, step: Step) -> GateResult:
    evidence = Evidence(sized(whole, step.size))
    try:
        rows = evidence.rows("pool").height
        before = Evidence(sized(whole, step.smaller)).path("pool")
        lost = foreign_lines(before, evidence.path("pool")) if step.smaller else 0
        prints = {evidence.label("pool"): evidence.sha256("pool")}
    except RC1Error as error:
        return GateResult(GROWTH, error=str(error))
    checks = (
        equal("rows", rows, step.size, "build the pool again: rc1 build-pool --rebuild"),
        equal(
            "rows of the smaller size that are gone", lost, 0,
            "this size does not contain all rows of the smaller one; grow from the start: rc1 scale-up --rebuild",
        ),
    )  # fmt: skip
    return GateResult(GROWTH, checks, evidence=prints)


def _stability(run: Run) -> GateResult:
    """Ask the judge about a sample of the rows; only its current scores count, not stored ones."""
    config, evidence = run.config, Evidence(run)
    if why := not_applicable(run).get(STABILITY):
        return GateResult(STABILITY, not_applicable=why)
    if waiver := config.gates.waivers.get(STABILITY, ""):
        return GateResult(STABILITY, waiver=waiver)
    try:
        rows = evidence.rows("pool")
        asked = rows.sample(min(JUDGED, rows.height), seed=config.pool.seed)["messages"].to_list()
        _, lines = fresh_scores(run, asked, _STORE)
        prints = {evidence.label("pool"): evidence.sha256("pool")}
    except RC1Error as error:
        return GateResult(STABILITY, error=str(error))
    most = config.gates.stability.max_variance
    result = stability_gate(lines, samples=config.judge.samples, max_variance=most, last=len(asked))
    return replace(result, evidence=prints)


JUDGED = 60
"""Dialogues of a size that the judge scores again, before and after the pool grows: 180 calls at three samples."""
_STORE = "data/judge/scale_up.sqlite"
"""A separate store, so that a round's gates do not read these scores."""
