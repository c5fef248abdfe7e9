"""The reward's tables: their figures, a width of 80 columns, and that an undefined figure is never shown as 0."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from rc1_lib.cli.reward_tables import ablation_table, shadow_table


def drawn(tables: Table | Iterable[Table]) -> str:
    stream = StringIO()
    console = Console(file=stream, width=80)
    for table in [tables] if isinstance(tables, Table) else tables:
        console.print(table)
    text = stream.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    return text


def line(text: str, start: str) -> list[str]:
    """The words of the first line with this start."""
    return next(found for found in text.splitlines() if found.strip().startswith(start)).split()


def interval(value: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "confidence": 0.95, "resamples": 200}


def shadow(**changed: dict[str, Any]) -> dict[str, Any]:
    names = ("spearman", "kendall_tau", "top10_overlap", "top20_overlap", "corr_to_success_old", "corr_to_success_new")
    figures = {name: interval(0.81234, -0.75, 0.86) for name in names}
    return {"figures": {**figures, "corr_improve_pct": interval(1234.56, -1234.5, 1250.0), **changed}}


def ablated(**changed: float | None) -> dict[str, Any]:
    side = {"overclar_rate": 0.143, "success": 0.781, "avg_turns": 6.13, "ask_rate_where_needed": 0.93}
    return {
        "figures": {
            "without": side,
            "with": {**side, **changed},
            "rate_drop_pct": interval(57.3, 31.2, 80.1),
            "turns_up": interval(-0.112, -0.2, 0.03),
            "success_drop_pp": interval(None, None, None),
        }
    }


def test_shadow_figures_are_shown_with_their_intervals() -> None:
    text = drawn(shadow_table(shadow(spearman=interval(0.8, 0.75, 0.9), top20_overlap=interval(0.5, None, None))))
    assert line(text, "spearman")[1:] == ["0.800", "0.750", "to", "0.900"]
    assert line(text, "kendall_tau")[1:] == ["0.812", "-0.750", "to", "0.860"]
    assert line(text, "top20_overlap")[1:] == ["0.500", "none"]
    assert line(text, "corr_improve_pct")[1:] == ["1234.6", "-1234.5", "to", "1250.0"]


def test_ablation_shows_both_sides_and_the_differences() -> None:
    text = drawn(ablation_table(ablated(overclar_rate=0.061)))
    assert line(text, "asks where nothing is missing")[-4:] == ["14.3", "%", "6.1", "%"]
    assert line(text, "turns, mean")[-2:] == ["6.130", "6.130"]
    assert line(text, "rate_drop_pct")[1:] == ["57.3", "31.2", "to", "80.1"]
    assert line(text, "turns_up")[1:] == ["-0.112", "-0.200", "to", "0.030"]
    assert line(text, "success_drop_pp")[1:] == ["none", "none"]


@pytest.mark.parametrize("name", ["overclar_rate", "success", "avg_turns", "ask_rate_where_needed"])
def test_undefined_side_of_the_ablation_is_shown_as_none(name: str) -> None:
    assert drawn(ablation_table(ablated(**{name: None}))).count("none") == 3  # success_drop_pp holds the other two
