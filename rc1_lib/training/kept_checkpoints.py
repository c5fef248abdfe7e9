"""How many checkpoints a configuration writes, which of them the evaluation looks at, and which stay."""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice

from rc1_lib.config.run_config import RunConfig
from rc1_lib.training.checkpoint.retention import KeepRule


def steps_between(config: RunConfig) -> list[int]:
    """The steps between start and end that the evaluation looks at: ends of segments, evenly spread."""
    training = config.training
    ends = (config.steps - 1) // training.segment_steps
    count = min(training.held_out.between.checkpoints, ends)
    return [training.segment_steps * round((place + 1) * (ends + 1) / (count + 1)) for place in range(count)]


def keep_rule_of(config: RunConfig) -> KeepRule | None:
    """What stays of a run: what its section says, and what its evaluation will ask for. None: everything."""
    section = config.training.checkpoints
    if section.keep_last is None:
        return None
    return KeepRule(section.keep_last, section.keep_every, frozenset({*steps_between(config), config.steps}))


def count_saved(config: RunConfig) -> int:
    """How many checkpoints a run writes: at every multiple of either size, and of the last step.

    Those that `every_minutes` adds hang on how fast steps are, and are not among them.
    """
    sizes, steps = _sizes(config), config.steps
    multiples = sum(steps // size for size in sizes) - steps // math.lcm(*sizes)
    return multiples + (0 if any(steps % size == 0 for size in sizes) else 1)


def most_at_once(config: RunConfig) -> int:
    """How many checkpoints a run has at most: all, or what the rule leaves at the end and the one that comes next."""
    saved, rule = count_saved(config), keep_rule_of(config)
    if rule is None or rule.last >= saved:
        return saved
    named = rule.always.union(islice(_newest_first(config), rule.last))
    every = rule.every or config.steps + 1
    return min(saved, config.steps // every + sum(step % every != 0 for step in named) + 1)


def _sizes(config: RunConfig) -> tuple[int, int]:
    return config.training.checkpoints.every_steps, config.training.segment_steps


def _newest_first(config: RunConfig) -> Iterator[int]:
    """The steps that are saved, from the last one down."""
    steps = config.steps
    multiples = (range(steps - steps % size, 0, -size) for size in _sizes(config))
    return (step for step, _ in groupby(merge([steps], *multiples, reverse=True)))
