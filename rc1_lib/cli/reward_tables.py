"""Results of calibration, attack, shadow run and ablation as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from rc1_lib.check_words import figure
from rc1_lib.cli.tables import table

Report = Mapping[str, Any]
"""The body of a step's report; the table of its gate says what was expected of its figures."""

_GAINS = ("improve_pct_vs_old", "improve_pct_vs_equal", "mae_drop_pct_vs_old", "mae_drop_pct_vs_equal")
_CHANGES = ("rate_drop_pct", "turns_up", "success_drop_pp")
_CHOSEN = {
    "overclar_rate": "asks where nothing is missing",
    "ask_rate_where_needed": "asks where something is missing",
    "success": "success",
    "avg_turns": "turns, mean",
}
_SIDES = ("calibrated", "equal", "old")
_HALVES = ("success", "overclar_rate", "avg_turns")
_NONE = figure(None)


def calibration_table(report: Report) -> list[Table]:
    """Return three tables: weights with intervals, the folds on their held-out dialogues, and the gains."""
    found, old = report["calibration"], report["old_weights"]
    heads = ("dimension", "old", "calibrated", "interval")
    rows = [
        (name, _number(name, old.get(name, 0.0)), _number(name, found["weights"][name]),
         _span(name, found["intervals"].get(f"weight.{name}", {})))
        for name in report["names"]
    ]  # fmt: skip
    weights = table("weights", heads, rows, heads[1:])
    columns = ("fold", "rows", "groups", "spearman", "MAE")
    lines = [
        (index, fold["rows"], fold["groups"], _sides(fold["spearman"]), _sides(fold["mae"]))
        for index, fold in enumerate(found["folds"], 1)
    ]
    whole = ("all", found["rows"], found["groups"], _sides(found["median_spearman"]), _sides(found["mae"]))
    folds = table("held-out dialogues: calibrated / equal / old weights", columns, [*lines, None, whole], columns)
    folds.caption = "all: the median of the folds' spearman, the MAE over all held-out dialogues"
    gains = {name: {**found["intervals"].get(name, {}), "value": found[name]} for name in _GAINS}
    return [weights, folds, _figures("gains of the calibration", gains)]


def shadow_table(report: Report) -> Table:
    """Return every figure of the shadow run with its interval."""
    return _figures("baseline reward and calibrated reward", report["figures"])


def split_table(report: Report) -> Table:
    """Return the better half of each difficulty and task, by the baseline and the calibrated reward."""
    heads = ("group", "n", "success %", "delta pp", "over-clar. %", "turns")
    rows: list[tuple[str, ...] | None] = []
    for groups in report["split"].values():
        for group, found in groups.items():
            pairs = {name: [found[f"{name}_{side}"] for side in ("old", "new")] for name in _HALVES}
            count = _NONE if found["n"] is None else f"{found['n']:.0f}"
            delta = _NONE if found["delta_pp"] is None else f"{found['delta_pp']:+.1f}"
            asks, turns = _pair(pairs["overclar_rate"], 100.0, 1), _pair(pairs["avg_turns"], 1.0, 2)
            rows.append((group, count, _pair(pairs["success"], 100.0, 1), delta, asks, turns))
        rows.append(None)
    return table("the better half by baseline reward / by calibrated reward", heads, rows, heads[1:])


def ablation_table(report: Report) -> list[Table]:
    """Return what the reward selects without and with the penalty, and the differences with intervals."""
    figures = report["figures"]
    rows = []
    for name, words in _CHOSEN.items():
        sides = (figures["without"][name], figures["with"][name])
        rows.append((words, *(_number(name, one) if name == "avg_turns" else _share(one) for one in sides)))
    chosen = table("over-clarification penalty", ("figure", "without", "with"), rows, ("without", "with"))
    return [chosen, _figures("differences", {name: figures[name] for name in _CHANGES})]


def attack_table(report: Report) -> Table:
    """Compare each policy's mean reward with the scripted expert's, worst first; the verdict names the failures."""
    prompts, teacher = report["shadow"]["prompts"], figure(report["teacher"]["mean"])
    title = f"adversarial policies on {prompts} prompts; the scripted expert's mean reward is {teacher}"
    rows = []
    for name, found in sorted(
        report["policies"].items(), key=lambda item: (item[1]["margin"] is None, item[1]["margin"])
    ):
        need = report["by_need"].get(name, {})
        values = (found["mean"], need.get("needed"), need.get("not needed"), found["margin"])
        share = "none" if found["above"] is None else f"{100 * found['above']:.0f} %"
        rows.append((name, *("none" if value is None else f"{value:.3f}" for value in values), share))
    numbers = ("reward", "asking needed", "not needed", "below the expert", "paid more")
    return table(title, ("policy", *numbers), rows, numbers)


def _figures(title: str, figures: Mapping[str, Report]) -> Table:
    rows = [(name, _number(name, found["value"]), _span(name, found)) for name, found in figures.items()]
    return table(title, ("figure", "value", "interval"), rows, ("value", "interval"))


def _number(name: str, value: float | None) -> str:
    """Return percentages and points with one digit, other numbers with three, or none."""
    if value is None:
        return _NONE
    return f"{value:.1f}" if "_pct" in name or name.endswith("_pp") else f"{value:.3f}"


def _span(name: str, found: Report) -> str:
    low, high = found.get("low"), found.get("high")
    return _NONE if low is None or high is None else f"{_number(name, low)} to {_number(name, high)}"


def _sides(found: Report) -> str:
    return " / ".join(_number("", found[side]) for side in _SIDES)


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{100.0 * value:.1f} %"


def _pair(values: Iterable[float | None], scale: float, digits: int) -> str:
    return " / ".join(_NONE if value is None else f"{scale * value:.{digits}f}" for value in values)
