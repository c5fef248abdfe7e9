"""Which exact solver says what answers are possible in a row."""

from __future__ import annotations

from rc1_lib.records import Row
from rc1_lib.rows.closure import closure
from rc1_lib.sources.embedded.solver import answers
from rc1_lib.task_specs import task_spec
from rc1_lib.task_specs.spec import Solver


def solver_of(row: Row) -> Solver | None:
    """Return the solver of the row's source, else that of its task; None if neither has one."""
    return answers if row["source"] == "embedded" else task_spec(row["task"]).answers


def options_of(row: Row) -> int | None:
    """Return how many answers are possible without asking; None if there is no end of them, or no solver."""
    solver = solver_of(row)
    found = solver(row, closure(row)) if solver else None
    return len(found) or None if found is not None else None
