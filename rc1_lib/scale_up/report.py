"""The report of a scale-up: every measure at every size, as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rc1_lib.config.file import departures
from rc1_lib.gate_report import PLOTS
from rc1_lib.records import Check, waivers_of
from rc1_lib.run import Run, published_config
from rc1_lib.scale_up import plot
from rc1_lib.scale_up.looks import Look
from rc1_lib.scale_up.record import look_body
from rc1_lib.workspace.artifacts import now, write_json

REPORT = "reports/scale_up.json"
PICTURE = f"{PLOTS}/scale_up.png"


def write_report(run: Run, looks: Sequence[Look], sentence: str) -> None:
    """Write the report, and draw it.

    Args:
        run: the run of the whole pool.
        looks: at every size so far, in order.
        sentence: the result in words.
    """
    write_json(
        run.workspace.path(REPORT),
        {
            "pass": all(look.passed for look in looks) and looks[-1].size == run.config.pool.n,
            "time": now(),
            "profile": run.config.profile,
            "config_sha256": run.config_sha256,
            "sizes": list(run.config.scale_up.sizes),
            "waived": waivers_of(result for look in looks for result in look.results),
            "thresholds_changed": departures(run.config, published_config()),
            "verdict": sentence,
            "table": table(looks),
            "looks": [look_body(look) for look in looks],
            "plots": {"every measure against size": PICTURE},
        },
    )
    plot.measures(run.workspace.path(PICTURE), measures(looks), caption=sentence)


def measures(looks: Sequence[Look]) -> dict[str, list[tuple[Look, Check]]]:
    """`gate: check` -> what each look found, for checks on all rows; checks by task are only in the report."""
    found: dict[str, list[tuple[Look, Check]]] = {}
    for look in looks:
        for result in look.results:
            for check in result.checks:
                if check.op != "info" and not check.name.endswith("]"):
                    found.setdefault(f"{result.name}: {check.name}", []).append((look, check))
    return found


def table(looks: Sequence[Look]) -> list[dict[str, str]]:
    """One row per measure, one column per look; `FAILED` after a value that misses its threshold."""
    titles = [look.title for look in looks]
    return [
        {
            "measure": name,
            "wanted": _wanted([check for _, check in values]),
            **dict.fromkeys(titles, ""),
            **{look.title: _amount(check.value) + ("" if check.passed else " FAILED") for look, check in values},
        }
        for name, values in measures(looks).items()
    ]


def _wanted(checks: Sequence[Check]) -> str:
    """The threshold of a measure; empty if it differs between sizes."""
    wanted = {f"{check.op} {_amount(check.threshold)}" for check in checks}
    return wanted.pop() if len(wanted) == 1 else ""


def _amount(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
