"""Several rollouts ("takes") of each shadow prompt by the same scripted expert, for the penalty to choose from.

Take 0 is the shadow row's own dialogue. In every other take the expert meets the prompt again and asks, skips and
repeats by the same habits, so that takes differ as a policy's samples would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from rc1_lib.config.run_config import RunConfig
from rc1_lib.pool.build import chosen_variants
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import Pack

_NUMBER = r"/take-\d+$"


@dataclass(slots=True)
class TakesReport:
    """Counts for the manifest."""

    rows: Counter[str] = field(default_factory=Counter)
    prompts: int = 0
    finished: int = 0
    over_the_limits: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON-ready values, under the manifest's keys."""
        return {
            "rows": dict(sorted(self.rows.items())),
            "prompts": self.prompts,
            "finished_dialogues_with_one_take_only": self.finished,
            "takes_left_out_beyond_max_turns": self.over_the_limits,
        }


def write_takes(planned: Sequence[PlannedRow], config: RunConfig, pack: Pack, report: TakesReport) -> list[bytes]:
    """Return `ablation.takes` dialogues for each planned row's exact prompt, as JSON lines in the plan's order.

    Ids are `<id of the row>/take-<number>`. A finished dialogue has one take, itself. As in the pool, a take that would
    exceed `pool.max_turns` is left out and counted.
    """
    lines = []
    for row, (variant, _) in zip(planned, chosen_variants(planned, config, pack), strict=True):
        finished = row.question.dialogue is not None
        report.prompts += 1
        report.finished += finished
        for take in range(1 if finished else config.ablation.takes):
            written = write_row(row, variant.recipe, config.pool, pack, take)
            if written is None:
                report.over_the_limits += 1
                continue
            report.rows[row.question.task] += 1
            lines.append(orjson.dumps({**written, "id": f"{row.id}/take-{take}"}) + b"\n")
    return lines


def prompt_id() -> pl.Expr:
    """Return the id of the shadow row whose prompt a take uses, from column `id`."""
    return pl.col("id").str.replace(_NUMBER, "")


def by_prompt(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `prompt` (the shadow row's id) to takes, and replace their `bucket` by the shadow row's.

    Difficulty is measured on the whole dialogue, so takes of one prompt can be in different buckets although the prompt
    is equally difficult in all of them.
    """
    of_first = pl.col("bucket").filter(pl.col("id").str.ends_with("/take-0")).first()
    return frame.with_columns(prompt=prompt_id()).with_columns(bucket=of_first.over("prompt"))
