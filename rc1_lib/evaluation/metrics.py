"""The metrics of a policy; each is a ratio of two sums over episodes.

A prompt *needs* asking if information is missing, and is *clear* otherwise. A prompt is *asked* if the policy asks the
user at least once.

| metric | counts | per |
|---|---|---|
| `success` | solved | all |
| `success_needed`, `success_clear` | solved | prompts that need asking; clear ones |
| `success_hard` | solved | hard prompts of multi-hop tasks (HotpotQA, StrategyQA) together |
| `right` | right answers | all |
| `right_needed`, `right_clear` | right answers | prompts that need asking; clear ones |
| `right_hard` | right answers | hard prompts of multi-hop tasks together |
| `lucky` ("right without asking") | right answers | prompts that need asking, if the missing piece was not obtained |
| `declined` | no answer: refused, or said that it cannot be known | all |
| `ask_recall` | asked | prompts that need asking |
| `ask_precision` | asked prompts that need asking | asked prompts |
| `overclar_rate` | asked | clear prompts |
| `ask_gap` | `ask_recall` minus `overclar_rate` | |
| `needless_questions` | questions | clear prompts |
| `obtained` | got the missing information | prompts that need asking |
| `off_target` | questions for something else | prompts that need asking |
| `turns`, `hops`, `tokens`, `tool_errors` | messages of the model, calls of wiki and calc, tokens, failed calls | all |
| `malformed` | malformed turns | turns |

A right answer counts as solved only if nothing was missing or the user gave it, so `right_needed` can be larger than
`success_needed`; `right_clear` equals `success_clear`. Compare `lucky` with chance (`rc1_lib.evaluation.chance`).

`ask_recall`, `overclar_rate` and `ask_gap` do not depend on how many prompts need asking; `ask_precision` does, so
compare it only between policies on the same prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.task_specs import task_names, task_spec

GAP = "ask_gap"
LUCKY = "right without asking"
"""What people read for the metric `lucky`."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A metric: the sum of `over` divided by the sum of `of`; undefined if the latter is 0.

    Attributes:
        over: the numerator of one episode.
        of: the denominator of one episode.
        is_share: whether it is a share in [0, 1], whose changes are in percentage points, or a mean.
    """

    over: pl.Expr
    of: pl.Expr
    is_share: bool = True


_ALL = pl.col("row_id").is_not_null()  # a column of ones; a literal would have one row for any group size
_NEEDS, _CLEAR = pl.col("needs"), ~pl.col("needs")
_ASKED, _SOLVED, _RIGHT = pl.col("asked") > 0, pl.col("solved"), pl.col("right")
_WITHOUT = _NEEDS & ~pl.col("obtained")


def hard() -> pl.Expr:
    """Return whether a prompt counts in the specification's check on hard rows: only those of multi-hop tasks do."""
    return (pl.col("bucket") == "hard") & pl.col("task").is_in(
        [task for task in task_names() if task_spec(task).multi_hop]
    )


def ratios() -> dict[str, Ratio]:
    """Return every metric except the gap, in order."""
    return {
        "success": Ratio(_SOLVED, _ALL),
        "success_needed": Ratio(_SOLVED & _NEEDS, _NEEDS),
        "success_clear": Ratio(_SOLVED & _CLEAR, _CLEAR),
        "success_hard": Ratio(_SOLVED & hard(), hard()),
        "right": Ratio(_RIGHT, _ALL),
        "right_needed": Ratio(_RIGHT & _NEEDS, _NEEDS),
        "right_clear": Ratio(_RIGHT & _CLEAR, _CLEAR),
        "right_hard": Ratio(_RIGHT & hard(), hard()),
        "lucky": Ratio(pl.col("lucky"), _WITHOUT),
        "declined": Ratio(pl.col("status") == EpisodeStatus.DECLINED.value, _ALL),
        "ask_recall": Ratio(_ASKED & _NEEDS, _NEEDS),
        "ask_precision": Ratio(_ASKED & _NEEDS, _ASKED),
        "overclar_rate": Ratio(_ASKED & _CLEAR, _CLEAR),
        "needless_questions": Ratio(pl.col("asked") * _CLEAR, _CLEAR, is_share=False),
        "obtained": Ratio(pl.col("obtained") & _NEEDS, _NEEDS),
        "off_target": Ratio(pl.col("off_target") * _NEEDS, _NEEDS, is_share=False),
        "turns": Ratio(pl.col("turns"), _ALL, is_share=False),
        "hops": Ratio(pl.col("hops"), _ALL, is_share=False),
        "tokens": Ratio(pl.col("tokens"), _ALL, is_share=False),
        "tool_errors": Ratio(pl.col("tool_errors"), _ALL, is_share=False),
        "malformed": Ratio(pl.col("malformed"), pl.col("turns")),
    }


IS_SHARE: Mapping[str, bool] = {**{name: ratio.is_share for name, ratio in ratios().items()}, GAP: True}
FIGURES = tuple(IS_SHARE)


def statuses_by(frame: pl.DataFrame, column: str) -> dict[str, dict[str, float]]:
    """Return the share of each final status by group: {group: {status: share}}."""
    counted = (
        frame.group_by(column, "status").len().with_columns(share=pl.col("len") / pl.col("len").sum().over(column))
    )
    found: dict[str, dict[str, float]] = {}
    for group, status, share in counted.sort(column, "status").select(column, "status", "share").iter_rows():
        found.setdefault(group, {})[status] = share
    return found
