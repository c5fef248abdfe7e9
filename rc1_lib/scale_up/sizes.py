"""The sizes that a pool grows through, each as a run with its own files next to those of the whole pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the growth.

    Attributes:
        smaller: rows before it; 0 at the beginning.
        size: rows after it.
    """

    smaller: int
    size: int


def steps(run: Run) -> list[Step]:
    """The steps from no rows to the whole pool.

    Raises:
        ConfigError: when the last size is not the pool's.
    """
    sizes, whole = run.config.scale_up.sizes, run.config.pool.n
    if sizes[-1] != whole:
        raise ConfigError(
            f"scale_up.sizes: ends with {sizes[-1]}, expected {whole} (pool.n), because the last size is the whole "
            f"pool; change one of the two"
        )
    return [Step(smaller, size) for smaller, size in pairwise((0, *sizes))]


def sized(whole: Run, size: int) -> Run:
    """The run whose pool has `size` rows of the whole one, with measures and balanced pool of these rows."""
    config = whole.config
    if size == config.pool.n:
        return whole
    pool = config.pool.model_copy(update={"n": size, "path": _beside(config.pool.path, size)})
    difficulty = config.difficulty.model_copy(
        update={
            "metrics_path": _beside(config.difficulty.metrics_path, size),
            "balanced_path": _beside(config.difficulty.balanced_path, size),
        }
    )
    return replace(whole, config=config.model_copy(update={"pool": pool, "difficulty": difficulty}))


def _beside(path: str, size: int) -> str:
    """`data/rc1_seed.metrics.jsonl` becomes `data/rc1_seed_1000.metrics.jsonl`."""
    file = PurePosixPath(path)
    stem, dot, rest = file.name.partition(".")
    return str(file.with_name(f"{stem}_{size}{dot}{rest}"))
