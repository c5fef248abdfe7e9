"""Check rows in memory with the gates of the preflight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.check_words import failed_lines, figure
from rc1_lib.errors import ConfigError
from rc1_lib.extras.notebook.cards import Card, Shown
from rc1_lib.extras.notebook.frames import held
from rc1_lib.preflight.gate_list import PREFLIGHT, evaluate
from rc1_lib.records import PASSING, Check, GateResult
from rc1_lib.run import Run

_IN_FRAMES = {"pool", "shadow", "templates", "reference_templates", "sentence_model"}
ROW_GATES = tuple(spec.name for spec in PREFLIGHT if "pool" in spec.reads and set(spec.reads) <= _IN_FRAMES)
"""The gates that only need the pool's rows, the shadow set, the template packs and a sentence-embedding model."""
_CHECKS = {
    "gate": pl.String, "status": pl.String, "check": pl.String, "value": pl.Float64, "comparison": pl.String,
    "passed": pl.Boolean, "advice": pl.String,
}  # fmt: skip
_OFFENDERS = {"gate": pl.String, "id": pl.String, "reason": pl.String}


@dataclass(frozen=True, slots=True, repr=False)
class Verdicts(Shown):
    """The verdicts of gates.

    Attributes:
        results: one verdict per gate, as in the reports of a round.
    """

    results: tuple[GateResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every gate passed or is waived by name."""
        return all(result.status in PASSING for result in self.results)

    @property
    def checks(self) -> pl.DataFrame:
        """One row per comparison: `gate, status, check, value, comparison, passed, advice`.

        `value` is null if it is not a number; `comparison` shows it in full: `0.031 <= 0.05`.
        """
        rows = [
            {
                "gate": result.name, "status": result.status.value, "check": check.name, "value": _number(check.value),
                "comparison": _compared(check), "passed": check.passed, "advice": check.advice,
            }
            for result in self.results
            for check in result.checks
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_CHECKS)

    @property
    def offenders(self) -> pl.DataFrame:
        """The offending rows: `gate, id, reason`; at most a few thousand per gate."""
        rows = [
            {"gate": result.name, "id": _text(one.get("id")), "reason": _text(one.get("reason"))}
            for result in self.results
            for one in result.offenders
        ]
        return pl.DataFrame(rows, schema=_OFFENDERS)

    def card(self) -> Card:
        """Every gate's status, and for failed gates what failed and what to do."""
        gates = [{**result.to_dict(), "offenders": len(result.offenders)} for result in self.results]
        lines = [line.strip() for gate in gates for line in failed_lines(gate, "see .offenders")]
        said = ", ".join(f"{result.name} {result.status.value}" for result in self.results)
        statuses = pl.DataFrame(
            [(result.name, result.status.value, len(result.checks)) for result in self.results],
            schema=["gate", "status", "checks"],
            orient="row",
        )
        return Card(f"gates {'passed' if self.passed else 'FAILED'}: {said}", lines, [statuses])


def run_gates(
    run: Run, rows: pl.DataFrame, *, gates: Sequence[str] = ROW_GATES, shadow: pl.DataFrame | None = None
) -> Verdicts:
    """Check rows with gates of the preflight. Nothing is written.

    Args:
        run: from `open_run`: its thresholds, template packs and shadow set.
        rows: one dialogue per row, with the columns of a pool (`Pools.pool`, `read_rows`), all of split `pool`.
        gates: which, of `mix`, `length`, `diversity`, `duplicates`, `leakage` and `answer_rule`; default: all of them.
        shadow: the held-out rows for `leakage`, of split `shadow`; default: the run's own file.

    Returns:
        One verdict per gate; a gate that cannot be evaluated has status `error` and says why.

    Raises:
        RC1Error: if the frame does not contain rows of a pool (naming column and row), or a gate is unknown.
    """
    for name in gates:
        if name not in ROW_GATES:
            raise ConfigError(f"gate '{name}' cannot check a frame of rows; expected some of {', '.join(ROW_GATES)}")
    if not gates:
        raise ConfigError(f"no gate was given; expected some of {', '.join(ROW_GATES)}")
    evidence = held(run, {"pool": rows, **({} if shadow is None else {"shadow": shadow})})
    return Verdicts(tuple(evaluate(name, evidence, 1) for name in gates))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _compared(check: Check) -> str:
    return figure(check.value) if check.op == "info" else f"{figure(check.value)} {check.op} {figure(check.threshold)}"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
