"""What engines are set up by: one type for those of a run, one for those that learn from rows with labels.

A set-up holds sections of the configuration as they are, frozen, and what the configuration cannot say. An engine names
the one that it takes (`Engine.takes`); whoever makes an engine says which one it has (`registry.make_engine`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rc1_lib.config.engines import OF_RUNS, LearnsFrom
from rc1_lib.config.run_config import RunConfig
from rc1_lib.training.device import Precision
from rc1_lib.training.train_config import EngineSection, ModelSection


@dataclass(frozen=True, slots=True)
class EpisodeSetup:
    """For an engine of a run: its policy plays episodes in the dialogue world, whatever it learns from.

    Attributes:
        config: of the run.
        base: the folder or hub name of the policy that is started from, which is the reference too.
        seed: of the run; it decides first weights, minibatches and what is sampled.
    """

    learns_from: ClassVar = OF_RUNS
    config: RunConfig
    base: str
    seed: int


@dataclass(frozen=True, slots=True)
class SupervisedSetup:
    """For an engine that learns the labels of rows.

    Attributes:
        model: the base, and how it is adapted; without an adapter all its weights are trained.
        engine: the learning rate, and whatever else of the section the engine has a use for.
        micro_batch: rows of one forward pass.
        seed: of whatever the engine draws.
        devices: kinds of devices, the first that is there is taken.
        precision: the best that is wanted; a device that lacks it takes the next.
    """

    learns_from: ClassVar = (LearnsFrom.ROWS,)
    model: ModelSection
    engine: EngineSection
    micro_batch: int
    seed: int
    devices: tuple[str, ...]
    precision: Precision
