"""Which rows of the pool a step plays: buckets in set shares, and again those that were not solved, up to a cap.

Of every step's rows a share, which falls by a schedule over the steps, comes from passing over the seed pool in random
order, bucket by bucket. What the schedule leaves free may go to rows whose last episode was not solved, up to
`low_perf_cap` of the step; where fewer are known, the pass over the pool fills up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rc1_lib.config import PrioritySampling
from rc1_lib.records import BUCKETS, Bucket

PoolRow = Mapping[str, Any]


class Curriculum:
    """An endless source of steps' rows. Its whole state is JSON, and nothing else decides what comes next.

    A batch is `{"step": finished steps, "rows": rows, "keys": names of the episodes}`. Whoever plays the rows puts
    `solved` (one bool a row) into the batch; the next call reads it there.
    """

    def __init__(self, rows: Sequence[PoolRow], sampling: PrioritySampling, batch_size: int, seed: int) -> None:
        """Starts at the first step.

        Args:
            rows: those to learn from, each with `id` and `bucket`.
            sampling: shares, cap and schedule.
            batch_size: rows of a step.
            seed: of every choice.
        """
        self._sampling, self._size, self._seed = sampling, batch_size, seed
        self._rows = {str(row["id"]): row for row in rows}
        self._ids = {bucket: [str(row["id"]) for row in rows if row["bucket"] == bucket] for bucket in BUCKETS}
        self._step = 0
        self._passed = dict.fromkeys(BUCKETS, 0)
        self._unsolved: list[str] = []
        self._given: dict[str, Any] | None = None

    def next(self) -> dict[str, Any]:
        """The rows of the next step."""
        self._learn()
        again = self._draw_unsolved()
        counts = _shared_out(self._size - len(again), self._shares())
        fresh = [row_id for bucket in BUCKETS for row_id in self._pass_over(bucket, counts[bucket])]
        chosen = [*again, *fresh]
        self._given = {
            "step": self._step,
            "rows": [self._rows[row_id] for row_id in chosen],
            # A row may stand in a step twice; the episodes are two.
            "keys": [f"{row_id}/{place}" for place, row_id in enumerate(chosen)],
        }
        self._step += 1
        return self._given

    def state_dict(self) -> dict[str, Any]:
        """Steps given out, how far the pass over each bucket is, and the rows that were not solved."""
        self._learn()
        return {"step": self._step, "passed": dict(self._passed), "unsolved": list(self._unsolved)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to where `state_dict` was taken."""
        self._step, self._passed = state["step"], dict(state["passed"])
        self._unsolved, self._given = list(state["unsolved"]), None

    def seed_ratio(self, step: int) -> float:
        """The least share of a step that comes from passing over the pool: the schedule's last point at or before."""
        points = [point for point in self._sampling.seed_ratio_schedule if point.step <= step]
        return max(points, key=lambda point: point.step).ratio if points else 1.0

    def _shares(self) -> dict[str, float]:
        if self._sampling.enable:
            return {bucket: self._sampling.by_difficulty[bucket] for bucket in BUCKETS}
        return {bucket: len(self._ids[bucket]) / len(self._rows) for bucket in BUCKETS}

    def _learn(self) -> None:
        """Note which rows of the last step were solved."""
        if self._given is None or "solved" not in self._given:
            return
        solved = {
            str(row["id"]): bool(well) for row, well in zip(self._given["rows"], self._given["solved"], strict=True)
        }
        kept = [row_id for row_id in self._unsolved if row_id not in solved]
        self._unsolved = kept + [row_id for row_id, well in solved.items() if not well]
        self._given = None

    def _draw_unsolved(self) -> list[str]:
        if not self._sampling.enable:
            return []
        free = 1.0 - self.seed_ratio(self._step)
        # 1 - 0.9 is a little less than 0.1; that must not cost a row.
        most = int(self._size * min(self._sampling.low_perf_cap, free) + 1e-9)
        order = self._rng("unsolved", self._step).permutation(len(self._unsolved))[:most]
        return [self._unsolved[place] for place in order.tolist()]

    def _pass_over(self, bucket: Bucket, count: int) -> list[str]:
        """The next rows of a bucket; each pass has an order of its own."""
        ids, found = self._ids[bucket], list[str]()
        for place in range(self._passed[bucket], self._passed[bucket] + count):
            if place % len(ids) == 0 or not found:
                order = self._rng(f"pass {bucket}", place // len(ids)).permutation(len(ids))
            found.append(ids[order[place % len(ids)]])
        self._passed[bucket] += count
        return found

    def _rng(self, purpose: str, number: int) -> np.random.Generator:
        name = hashlib.sha256(f"{self._seed}/{purpose}/{number}".encode()).digest()
        return np.random.default_rng(int.from_bytes(name[:16], "big"))


def _shared_out(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers that sum to `total` in the given shares (largest remainders)."""
    exact = {bucket: total * share for bucket, share in shares.items()}
    counts = {bucket: int(value) for bucket, value in exact.items()}
    for bucket in sorted(exact, key=lambda name: (counts[name] - exact[name], name))[: total - sum(counts.values())]:
        counts[bucket] += 1
    return counts
