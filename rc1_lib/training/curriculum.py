"""Draw the rows of each step: buckets in fixed shares, and unsolved rows again, up to a cap.

A share of each step, which falls by a schedule, comes from passes over the pool in random order. The passes are
separate by bucket and, if a share is set for them, for rows with missing information. The rest of a step may go to rows
whose last episode was not solved, up to `low_perf_cap` of the step. If there are fewer of those, the passes fill up the
step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rc1_lib.config.run_config import PrioritySampling
from rc1_lib.errors import ConfigError
from rc1_lib.numbers.sums import apportion
from rc1_lib.records import BUCKETS, MeasuredRow


@dataclass(frozen=True, slots=True)
class _Stratum:
    """Rows that have a common share of every step."""

    name: str
    ids: tuple[str, ...]
    share: float


class Curriculum:
    """An endless source of rows. Its state is plain JSON and fully determines the next rows.

    A batch is `{"step": finished steps, "rows": rows, "keys": names of the episodes}`. The strategy that plays the rows
    adds `solved` to the batch (one bool per row), which the next call reads.
    """

    def __init__(self, rows: Sequence[MeasuredRow], sampling: PrioritySampling, batch_size: int, seed: int) -> None:
        """Start at the first step.

        Args:
            rows: training rows, each with `id` and `bucket`.
            sampling: shares, cap and schedule.
            batch_size: rows per step.
            seed: of every random choice.

        Raises:
            ConfigError: if no row belongs to a stratum with a share.
        """
        self._sampling, self._size, self._seed = sampling, batch_size, seed
        self._rows = {str(row["id"]): row for row in rows}
        self._strata = _strata(rows, sampling)
        self._step = 0
        self._passed = dict.fromkeys((stratum.name for stratum in self._strata), 0)
        self._unsolved: list[str] = []
        self._given: dict[str, Any] | None = None

    def next(self) -> dict[str, Any]:
        """Return the rows of the next step."""
        self._learn()
        again = self._draw_unsolved()
        counts = apportion(self._size - len(again), {stratum.name: stratum.share for stratum in self._strata})
        fresh = [row_id for stratum in self._strata for row_id in self._pass_over(stratum, counts[stratum.name])]
        chosen = [*again, *fresh]
        self._given = {
            "step": self._step,
            "rows": [self._rows[row_id] for row_id in chosen],
            # A row may occur twice in a step, in two different episodes.
            "keys": [f"{row_id}/{place}" for place, row_id in enumerate(chosen)],
        }
        self._step += 1
        return self._given

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps, the position in the pass over each stratum, and the unsolved rows."""
        self._learn()
        return {"step": self._step, "passed": dict(self._passed), "unsolved": list(self._unsolved)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the position that `state_dict` returned."""
        self._step, self._passed = state["step"], dict(state["passed"])
        self._unsolved, self._given = list(state["unsolved"]), None

    def seed_ratio(self, step: int) -> float:
        """Return the least share of a step from passes over the pool: that of the schedule's last point so far."""
        points = [point for point in self._sampling.seed_ratio_schedule if point.step <= step]
        return max(points, key=lambda point: point.step).ratio if points else 1.0

    def _learn(self) -> None:
        """Record which rows of the last step were solved."""
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
        # 1 - 0.9 is slightly less than 0.1; the rounding must not cost a row.
        most = int(self._size * min(self._sampling.low_perf_cap, free) + 1e-9)
        order = self._rng("unsolved", self._step).permutation(len(self._unsolved))[:most]
        return [self._unsolved[place] for place in order.tolist()]

    def _pass_over(self, stratum: _Stratum, count: int) -> list[str]:
        """Return the next rows of a stratum. Each pass has its own order."""
        ids, found, passed = stratum.ids, list[str](), self._passed[stratum.name]
        for place in range(passed, passed + count):
            if place % len(ids) == 0 or not found:
                order = self._rng(f"pass {stratum.name}", place // len(ids)).permutation(len(ids))
            found.append(ids[order[place % len(ids)]])
        self._passed[stratum.name] += count
        return found

    def _rng(self, purpose: str, number: int) -> np.random.Generator:
        name = hashlib.sha256(f"{self._seed}/{purpose}/{number}".encode()).digest()
        return np.random.default_rng(int.from_bytes(name[:16], "big"))


def _strata(rows: Sequence[MeasuredRow], sampling: PrioritySampling) -> list[_Stratum]:
    """Group rows by bucket, or by bucket and missing information. Shares of empty groups go to the others."""
    named: list[_Stratum] = []
    missing = sampling.missing_share if sampling.enable else None
    for bucket in BUCKETS:
        of_it = [row for row in rows if row["bucket"] == bucket]
        share = sampling.by_difficulty[bucket] if sampling.enable else len(of_it) / len(rows)
        if missing is None:
            named.append(_Stratum(bucket, _ids(of_it), share))
        else:
            lacking, whole = (
                _ids([row for row in of_it if row["needs_clarification"] is lacks]) for lacks in (True, False)
            )
            named.append(_Stratum(f"{bucket}, missing", lacking, share * missing))
            named.append(_Stratum(f"{bucket}, whole", whole, share * (1 - missing)))
    filled = [stratum for stratum in named if stratum.ids]
    together = sum(stratum.share for stratum in filled)
    if not together:
        there = "; ".join(f"{len(stratum.ids)} {stratum.name}" for stratum in filled)
        raise ConfigError(
            "priority_sampling: found no training row in a group to which by_difficulty and missing_share give a "
            f"share, expected at least one; there are {there}: give one of these a share, or set enable: false"
        )
    return [replace(stratum, share=stratum.share / together) for stratum in filled]


def missing_share(rows: Sequence[MeasuredRow], sampling: PrioritySampling) -> float:
    """Return the expected share of a training's rows in which something is missing, before unsolved rows come again."""
    lacking = {str(row["id"]) for row in rows if row["needs_clarification"]}
    return sum(one.share * len(lacking.intersection(one.ids)) / len(one.ids) for one in _strata(rows, sampling))


def _ids(rows: Sequence[MeasuredRow]) -> tuple[str, ...]:
    return tuple(str(row["id"]) for row in rows)
