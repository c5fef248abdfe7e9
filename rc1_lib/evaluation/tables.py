"""The tables of an evaluation's report, for a terminal (100 columns) or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rc1_lib.evaluation.gate import CHECK_OF, END_OF
from rc1_lib.evaluation.metrics import IS_SHARE, LUCKY
from rc1_lib.evaluation.paired import OVERCLAR_DROP

Report = Mapping[str, Any]
_NONE = "none"
_WORDS = {
    "success": "success", "right": "right answers", "success_needed": "success, asking needed",
    "right_needed": "right, asking needed", "success_clear": "success, nothing missing",
    "right_clear": "right, nothing missing", "success_hard": "success, hard, multi-hop",
    "right_hard": "right, hard, multi-hop", "lucky": LUCKY, "declined": "declines to answer",
    "ask_recall": "asks, needed (recall)",
    "overclar_rate": "asks, not needed", "ask_gap": "gap of the two", "ask_precision": "precision of asking",
    "obtained": "got the piece", "off_target": "off-target questions", "needless_questions": "needless questions",
    "turns": "turns", "hops": "tool calls", "tokens": "tokens", "tool_errors": "failed calls",
    "malformed": "malformed turns",
}  # fmt: skip
_SIDES = ("before", "after")
_OF_BASELINE = ("ask_recall", "overclar_rate", "success_needed", "right_needed", "right")
_GAINS = ("success_needed", "right_needed")
_OF_GROUP = ("success", "right", "ask_recall", "overclar_rate", "turns")


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of texts.

    Attributes:
        title: what it shows.
        head: the names of the columns; the first column has words, the others numbers.
        rows: the rows, each with one cell per column.
    """

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.head, ("---", *("---:",) * (len(self.head) - 1)), *self.rows]
        body = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
        return f"**{self.title}**\n\n{body}\n"


def figures_rows(report: Report, mode: str) -> Rows:
    """Tabulate every metric before and after, its change with interval, and the gate's threshold.

    Args:
        report: has `before`, `after`, `modes`, and of an evaluation with a verdict `gate`, whose checks have the
            thresholds for sampled episodes.
        mode: `sampled` or `greedy`.
    """
    overall = report["modes"][mode]["overall"]
    judged = report["gate"]["checks"] if mode == "sampled" and "gate" in report else ()
    checks = {check["name"]: check for check in judged}
    rows = []
    for name, words in _WORDS.items():
        check = checks.get(CHECK_OF.get(name, ""))
        sides = [_value(name, overall[side][name]["value"]) for side in ("before", "after")]
        rows.append((words, *sides, *_change(name, overall["change"][name]), *_wanted(check, END_OF.get(name, ""))))
        if name == "lucky":
            chance = _value(name, (report.get("chance") or {}).get("overall"))
            rows.append(("  chance", chance, chance, "", "", "", ""))
        if name == "overclar_rate":
            drop, check = overall["change"][OVERCLAR_DROP], checks.get(CHECK_OF[OVERCLAR_DROP])
            rows.append((f"  {words}, down by", "", "", *_change(OVERCLAR_DROP, drop), *_wanted(check)))
    confidence = 100 * overall["change"]["success"]["confidence"]
    head = ("figure", report["before"], report["after"], "change", f"{confidence:g} % interval", "wanted", "passed")
    columns = len(head) if "gate" in report else head.index("wanted")
    seeds = len(report["prompts"])
    by = f" by {seeds} seeds" if seeds > 1 else ""
    title = f"{mode}: {overall['prompts'] // seeds:,} held-out prompts{by}"
    return Rows(title, head[:columns], [row[:columns] for row in rows])


def groups_rows(report: Report, mode: str) -> Rows:
    """Tabulate success, right answers, asking and turns for every task, difficulty and wording, before and after."""
    compared, seeds = report["modes"][mode], len(report["prompts"])
    head = ("group", "n", "success %", "right %", "asks, needed %", "asks, not needed %", "turns")
    groups = [("all", compared["overall"])]
    for by, found in compared["by"].items():
        groups += [(f"{name} wording" if by == "wording" else name, part) for name, part in found.items()]
    rows = [
        (
            name,
            f"{part['prompts'] // seeds:,}",
            *(" / ".join(_pair(figure, part)) for figure in _OF_GROUP),
        )
        for name, part in groups
    ]
    return Rows(f"{mode}, {report['before']} / {report['after']}", head, rows)


def needed_rows(report: Report, mode: str) -> Rows:
    """Tabulate success and right answers where asking is needed, of all and by task, next to chance."""
    compared, chance = report["modes"][mode], report.get("chance") or {}
    by_task = chance.get("by_task", {})
    places = [("all", compared["overall"], chance.get("overall"))]
    places += [(name, part, by_task.get(name)) for name, part in compared["by"]["task"].items()]
    rows = [
        (
            name,
            *(
                cell
                for figure in ("success_needed", "right_needed")
                for cell in (" / ".join(_pair(figure, part)), _with_interval(part["change"][figure]))
            ),
            " / ".join(_pair("lucky", part)),
            _NONE if by_chance is None else f"{100 * by_chance:.0f}",
        )
        for name, part, by_chance in places
    ]
    head = ("need asking", "success", "change, pp", "right", "change, pp", "unasked", "chance")
    title = f"{mode}, {report['before']} / {report['after']}, % of prompts that need asking; unasked: {LUCKY}"
    return Rows(title, head, rows)


def success_rows(report: Report, mode: str) -> Rows:
    """Tabulate success and right answers, of all and by task, before and after, with the intervals of their changes."""
    compared = report["modes"][mode]
    rows = [
        (
            f"{name}, {words}", f"{part['prompts']:,}",
            *(_value(figure, part[side][figure]["value"]) for side in _SIDES), *_change(figure, part["change"][figure]),
        )
        for name, part in [("all", compared["overall"]), *compared["by"]["task"].items()]
        for figure, words in (("success", "success"), ("right", "right"))
    ]  # fmt: skip
    head = ("prompts", "n", report["before"], report["after"], "change", f"{100 * report['confidence']:g} % interval")
    return Rows(f"{mode}, {report['before']} / {report['after']}", head, rows)


def baseline_rows(report: Report) -> Rows:
    """Tabulate what each baseline does, then the trained policy, and how much the latter gains over each baseline."""
    found = {name: parts["all"] for name, parts in report["baselines"].items()}
    last = next(reversed(found.values()))
    sides = [
        *((name, part["before"], part["change"]) for name, part in found.items()),
        ("trained", last["after"], None),
    ]
    rows = [
        (
            name,
            *(_value(figure, side[figure]["value"]).removesuffix(" %") for figure in _OF_BASELINE),
            *("" if change is None else _with_interval(change[figure]) for figure in _GAINS),
        )
        for name, side, change in sides
    ]  # fmt: skip
    head = ("policy", "asks", "else", "solved", "right", "right, all", "trained: solved", "trained: right")
    title = (
        f"{report['prompts']:,} prompts, %: asks where needed, and else; solved and right where needed; the trained "
        "policy's gain there, pp"
    )
    return Rows(title, head, rows)


def proxy_rows(report: Report) -> Rows:
    """Tabulate judged score and success: by group of prompts, then of each seed."""
    found = report["proxy"]
    seeds = len(report["prompts"])
    pooled = {name: {**part, "prompts": part["prompts"] // seeds} for name, part in found["groups"].items()}
    lines = [*pooled.items(), *((f"seed {seed}", groups["all"]) for seed, groups in found["by_seed"].items())]
    head = ("group", "n", "score x 100", "change", "success %", "change, pp")
    rows = [
        (name, f"{part['prompts']:,}", *(cell(part[kind]) for kind in ("proxy", "truth") for cell in (_sides, _shift)))
        for name, part in lines
    ]
    return Rows(f"judged score and success, {report['before']} / {report['after']}", head, rows)


def _sides(found: Report) -> str:
    values = [found[side]["value"] for side in ("before", "after")]
    return " / ".join(_NONE if value is None else f"{100 * value:.1f}" for value in values)


def _shift(found: Report) -> str:
    return _with_interval(found["change"], 100.0)


def _with_interval(found: Report, scale: float = 1.0) -> str:
    value, low, high = (found[name] for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return _NONE
    return f"{scale * value:+.1f} ({scale * low:+.1f}, {scale * high:+.1f})"


def statuses_rows(report: Report, mode: str) -> Rows:
    """Tabulate how the episodes ended, in per cent."""
    sides = report["modes"][mode]["statuses"]
    names = (report["before"], report["after"])
    ends = sorted({status for side in sides.values() for status in side})
    rows = [(end, *(f"{100 * sides[name].get(end, 0.0):.1f} %" for name in names)) for end in ends]
    return Rows(f"how episodes ended, {mode}", ("end", *names), rows)


def _value(name: str, value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{100 * value:.1f} %" if IS_SHARE[name] else f"{value:.2f}"


def _change(name: str, found: Report) -> tuple[str, str]:
    """Return the change, signed and with its unit, and its interval."""
    value, low, high = found["value"], found["low"], found["high"]
    relative = name == OVERCLAR_DROP
    digits, unit = (1, " %" if relative else " pp") if relative or IS_SHARE[name] else (2, "")
    interval = _NONE if low is None or high is None else f"{low:+.{digits}f} to {high:+.{digits}f}"
    return (_NONE if value is None else f"{value:+.{digits}f}{unit}"), interval


def _wanted(check: Report | None, end: str = "") -> tuple[str, str]:
    """Return what a check wants, of its change or of an `end` of the interval, and whether it passed."""
    if check is None:
        return "", ""
    return f"{end} {check['op']} {check['threshold']:g}".lstrip(), "yes" if check["passed"] else "NO"


def _pair(figure: str, part: Report) -> list[str]:
    values = [part[side][figure]["value"] for side in ("before", "after")]
    share = IS_SHARE[figure]
    return [_NONE if value is None else f"{100 * value:.0f}" if share else f"{value:.2f}" for value in values]
