"""The shadow set has the agreed size, is stratified, repeats no question, and is as difficult as the pool."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from rc1_lib.checks import at_most, equal, info, number
from rc1_lib.difficulty.features import measure
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.numbers.sums import apportion
from rc1_lib.records import BUCKETS, GateResult, Task

MAX_BUCKET_DIFF = 0.15
"""By how much the share of easy, medium or hard rows may differ from the pool's. Chance moves a share of 245 rows by at
most 0.06 in 19 of 20 draws, one of 60 rows by 0.13."""


def shadow_gate(
    rows: pl.DataFrame, n: int, strata: Mapping[Task, float], buckets: tuple[pl.Series, pl.Series]
) -> GateResult:
    """Check the shadow rows: `n` of them, no source question twice, the stratified count per task, difficulty.

    Args:
        n: the agreed number of rows.
        strata: shares of the tasks; empty if the draw was not stratified.
        buckets: measured difficulty of the shadow rows, and of the pool's.
    """
    again = "build it again, with the pool: rc1 build-pool --rebuild"
    ours, pool = buckets
    questions = rows.select("source", "source_id").n_unique()
    checks = [
        equal("rows", rows.height, n, again),
        equal("questions standing twice", rows.height - questions, 0, again),
    ]
    wanted = apportion(n, strata) if strata else {}
    checks += [
        equal(f"rows[{task}]", int((rows["task"] == task).sum()), count, again) for task, count in wanted.items()
    ]
    apart = {bucket: abs(_share(ours, bucket) - _share(pool, bucket)) for bucket in BUCKETS}
    furthest = max(apart, key=lambda bucket: apart[bucket])
    checks.append(
        at_most(
            "share of a bucket, furthest from the pool's", apart[furthest], MAX_BUCKET_DIFF,
            f"the share of '{furthest}' rows differs, so results on this set say little about the pool; {again}",
        )
    )  # fmt: skip
    checks.append(info("needs clarification, share", number(rows["needs_clarification"].mean())))
    return GateResult("shadow_set", tuple(checks))


def _share(buckets: pl.Series, bucket: str) -> float:
    return int((buckets == bucket).sum()) / max(1, len(buckets))


def _judge(evidence: Evidence, _: Round) -> GateResult:
    config = evidence.run.config
    rows, strata = evidence.rows("shadow"), config.datasets if config.shadow.stratify else {}
    buckets = measure(rows)["bucket"], evidence.metrics()["bucket"]
    return shadow_gate(rows, config.shadow.n, strata, buckets)


SPEC = GateSpec("shadow_set", "is the shadow set whole, and like the pool", ("shadow", "metrics"), _judge)
