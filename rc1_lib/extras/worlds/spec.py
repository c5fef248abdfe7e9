"""The settings in a manifest that decide the episodes of an exported environment and their rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeVar, get_type_hints

import yaml

from rc1_lib.config.strict_yaml import fault_line, parse_yaml
from rc1_lib.environment.rewards import RewardSettings
from rc1_lib.environment.turn import Limits
from rc1_lib.errors import RC1Error
from rc1_lib.records import BUCKETS
from rc1_lib.reward.terms import difficulty_factor, over_clarification_penalty
from rc1_lib.run import Run
from rc1_lib.workspace.input_files import read_regular

NAME = "rc1-dialogue-world"
MANIFEST, ROWS = "openenv.yaml", "rows.jsonl"
OWN = "rc1"
"""RC1's section of the manifest; the rest belongs to OpenEnv."""


class Part(StrEnum):
    """A selection of a pool's rows."""

    ALL = "all"
    TRAINING = "training"
    EVALUATION = "evaluation"


_ADVICE = "export it again"
_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
Settings = TypeVar("Settings", Limits, RewardSettings)


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """Limits, reward settings and the fingerprint of the rows.

    Attributes:
        rows_sha256: of the bytes of `rows.jsonl`.
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
    def read(cls, folder: Path) -> Self:
        """Read the settings from the manifest of `folder`.

        Raises:
            RC1Error: if it is missing, or is not the manifest of an environment.
        """
        return cls.of_section(read_manifest(folder)[OWN], f"{folder / MANIFEST}: {OWN}.")

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

    def body(self) -> dict[str, dict[str, Any]]:
        """Return limits and reward settings as in the manifest."""
        return {"limits": asdict(self.limits), "reward": asdict(self.reward)}

    def reward_range(self) -> tuple[float, float]:
        """Return the lowest and the highest possible reward of an episode."""
        reward, limits = self.reward, self.limits
        asking = over_clarification_penalty(reward.cap, False, alpha=reward.alpha, cap=reward.cap)
        # Only a solved episode pays for its turns, and never so much that it would be worth less than a failed one.
        turns = 0.0 if reward.success else reward.turn * limits.turns
        worst = -(asking * reward.use_penalty + reward.malformed * (limits.malformed + 1) + turns)
        best = reward.success * max(difficulty_factor(bucket, reward.beta) for bucket in BUCKETS) - reward.turn
        # Rounded outwards, because penalties are summed in another order elsewhere. A step that does not end the
        # episode is worth 0.
        return math.floor(worst * 1e4) / 1e4, math.ceil(max(best, 0.0) * 1e4) / 1e4


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest in `folder`, which must have RC1's section.

    Raises:
        RC1Error: if it is missing, not YAML, or not the manifest of an environment.
    """
    path = folder / MANIFEST
    try:
        document = parse_yaml(read_regular(path).decode())
    except OSError as error:
        raise RC1Error(f"{path}: cannot be read ({error.strerror}), expected a manifest; {_ADVICE}") from None
    except yaml.YAMLError as error:
        raise RC1Error(f"{path}{fault_line(error)}: is not YAML ({getattr(error, 'problem', error)})") from None
    except ValueError as error:
        raise RC1Error(f"{path}: cannot be read ({error}), expected a manifest; {_ADVICE}") from None
    if not isinstance(document, dict) or not isinstance(document.get(OWN), dict):
        raise RC1Error(f"{path}: has no key '{OWN}', so it is not a manifest of RC1's environment; {_ADVICE}")
    return document


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
