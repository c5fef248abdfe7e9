"""The settings of an export that decide an episode and its reward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self, TypeVar, get_type_hints

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.rewards import RewardSettings, reward_terms
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run

_ADVICE = "export it again"
_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
Settings = TypeVar("Settings", Limits, RewardSettings)


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """Limits, reward settings and the fingerprint of the rows.

    Attributes:
        rows_sha256: of the bytes of the rows.
        reward: weights of its terms; the judge has no weight, because it is not asked here.
    """

    rows_sha256: str
    limits: Limits
    reward: RewardSettings

    @classmethod
    def of(cls, run: Run, rows_sha256: str) -> Self:
        """Return the settings of a run's training, without the judge."""
        reward = replace(RewardSettings.of(run.config), judge=0.0)
        return cls(rows_sha256, Limits.of(run.config.training.limits), reward)

    @classmethod
    def of_section(cls, own: Mapping[str, Any], where: str) -> Self:
        """Return the settings in a parsed section.

        Args:
            own: has the keys `rows`, `limits` and `reward`.
            where: file and section, for errors; the key follows it.

        Raises:
            RC1Error: if a key is missing, or has another form.
        """
        rows = own.get("rows")
        if not isinstance(rows, dict) or not isinstance(rows.get("sha256"), str):
            raise RC1Error(f"{where}rows.sha256 is missing, expected the SHA-256 of the rows; {_ADVICE}")
        limits = _settings(Limits, own.get("limits"), f"{where}limits")
        reward = _settings(RewardSettings, own.get("reward"), f"{where}reward")
        return cls(rows["sha256"], limits, reward)

    def opened(self, row: MeasuredRow) -> Episode:
        """Start an episode on `row`."""
        return Episode(World(row), self.limits)

    def paid(self, row: MeasuredRow, episode: Episode) -> float:
        """Compute the reward of an episode on `row`."""
        return reward_terms(episode.outcome(), row["bucket"], self.reward).total

    def body(self) -> dict[str, dict[str, Any]]:
        """Return limits and reward settings, as `of_section` reads them."""
        return {"limits": asdict(self.limits), "reward": asdict(self.reward)}


def _settings(kind: type[Settings], found: Any, where: str) -> Settings:
    types = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    if not isinstance(found, Mapping) or set(found) != set(names):
        shown = ", ".join(map(str, found)) if isinstance(found, Mapping) else repr(found)
        raise RC1Error(f"{where}: found {shown}, expected {', '.join(sorted(names))}; {_ADVICE}")
    for name in names:
        if not _is_of(types[name], found[name]):
            raise RC1Error(f"{where}.{name}: found {found[name]!r}, expected {_KINDS[types[name]]}; {_ADVICE}")
    try:
        return kind(**found)
    except ValueError as error:
        raise RC1Error(f"{where}: {error}; {_ADVICE}") from None


def _is_of(kind: type[int | float | bool], value: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind
