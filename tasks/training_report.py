"""The report of a training: what was trained from what, how long each stage took, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from prefect import State, task

from rc1_lib.config.file import departures
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import now, write_checksum, write_json

REPORT = "reports/train.json"


@dataclass(frozen=True, slots=True)
class Trained:
    """The run of one seed.

    Attributes:
        segments: the checkpoint from which it was resumed, if any, and every segment: steps, checkpoint, fingerprint,
            seconds.
        cached: how many of them came from the cache.
    """

    seed: int
    segments: list[dict[str, Any]]
    cached: int

    @property
    def checkpoint(self) -> Mapping[str, Any]:
        """The last segment."""
        return self.segments[-1]


@dataclass(slots=True)
class Story:
    """The progress of a flow run.

    Attributes:
        seconds: stage -> its duration, in the order of the stages.
        trained: the runs that reached their last step.
        evaluation: path of the evaluation's report; None if there is none yet.
        best: checkpoints copied because their evaluation passed.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    trained: list[Trained] = field(default_factory=list)
    evaluation: str | None = None
    best: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Time a stage."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = round(time.monotonic() - began, 1)

    def body(self, ending: State[Any], start: Mapping[str, Any]) -> dict[str, Any]:
        """The report, without the run.

        Args:
            ending: the final state of the flow run.
            start: `reference` and `rows` from the warm start.
        """
        return {
            "pass": ending.is_completed(),
            "state": ending.name,
            "message": ending.message,
            "reference": start["reference"],
            "rows": start["rows"],
            "runs": [
                {
                    "seed": one.seed,
                    "checkpoint": one.checkpoint["checkpoint"],
                    "sha256": one.checkpoint["sha256"],
                    "cached": one.cached,
                    "segments": one.segments,
                }
                for one in self.trained
            ],
            "evaluation": self.evaluation,
            "best": self.best,
            "seconds": self.seconds,
        }


@task(name="training report", persist_result=False)
def report_training(run: Run, body: dict[str, Any]) -> str:
    """Write `reports/train.json`; returns its path."""
    head = {
        "time": now(),
        "profile": run.config.profile,
        "config_sha256": run.config_sha256,
        "thresholds_changed": departures(run.config, published_config()),
    }
    write_json(run.workspace.path(REPORT), {**head, **body})
    write_checksum(run.workspace, REPORT)
    return REPORT
