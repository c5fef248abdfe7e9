"""What engines are set up by: the base, what is trained of it and how, and in a run the world that it plays in.

A set-up holds sections of the configuration as they are, frozen. A run makes it by `Setup.of_run`, a file of rows by
`rc1_lib.training.train_local.setup_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.updates import Steps
from rc1_lib.training.device import ORDER
from rc1_lib.training.models import model_section
from rc1_lib.training.train_config import ModelSection


@dataclass(frozen=True, slots=True)
class Setup:
    """For an engine.

    Attributes:
        model: the base, which is the reference too, and how it is adapted; without an adapter all weights are trained.
        lr: learning rate.
        update: how the data of a step become steps of the optimizer.
        rows: episodes or demonstrations of a step.
        max_tokens: of the longest demonstration.
        precision: `auto`, or the best that is wanted; a device that lacks it takes the next.
        seed: decides first weights, minibatches and what is sampled.
        devices: kinds of devices, the first that is there is taken.
        run: the configuration by which the policy plays; None for rows of a file, from which it learns alone.
    """

    model: ModelSection
    lr: float
    update: Steps
    rows: int
    max_tokens: int
    precision: str
    seed: int
    devices: tuple[str, ...] = ORDER
    run: RunConfig | None = None

    @classmethod
    def of_run(cls, config: RunConfig, base: str, seed: int) -> Self:
        """For an engine of a run.

        Args:
            config: of the run.
            base: the folder or hub name of the policy that is started from.
            seed: of the run.

        Raises:
            ConfigError: for a method of finetuning that is not known.
        """
        training, model = config.training, model_section(config, base)
        return cls(
            model=model,
            lr=config.lr,
            update=training.update,
            rows=config.batch_size,
            max_tokens=training.max_tokens,
            precision=training.precision,
            seed=seed,
            run=config,
        )

    @property
    def config(self) -> RunConfig:
        """The configuration of the run, for an engine that plays."""
        assert self.run is not None, "rows of a file are no run"
        return self.run
