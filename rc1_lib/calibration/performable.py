"""Whether a calibration could finish. This imports little, so that the answer comes first."""

from __future__ import annotations

from rc1_lib.config.source_path import are_finished
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run


def check_performable(run: Run) -> None:
    """Reject sources on which the ablation cannot run: finished dialogues have only one per prompt.

    Raises:
        ConfigError: says what such dialogues can be used for.
    """
    if are_finished(run.config, run.workspace):
        raise ConfigError(
            f"{run.config.sources.use}: has finished dialogues, one per prompt. The ablation of the penalty "
            f"compares several dialogues about the same prompt, so these cannot be calibrated on or get a ticket. "
            f"`rc1 build-pool`, `validate-pool`, `score` and `probe-scorer` accept them; for a ticket, give the "
            f"questions themselves (--sources DIR, hub or embedded)"
        )
