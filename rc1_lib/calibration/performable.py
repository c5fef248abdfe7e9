"""Whether a calibration could come to an end; little is imported, so that the answer is there before anything else."""

from __future__ import annotations

from rc1_lib.config.source_path import are_finished
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run


def check_performable(run: Run) -> None:
    """Refuse to begin what the ablation could not end: of a finished dialogue there is one about each prompt.

    Raises:
        ConfigError: saying what such dialogues can be used for.
    """
    if are_finished(run.config, run.workspace):
        raise ConfigError(
            f"{run.config.sources.use}: holds finished dialogues, one about each prompt. The ablation of the penalty "
            f"compares several about the same prompt, so that no calibration and no ticket can come of them. "
            f"`rc1 build-pool`, `validate-pool`, `score` and `probe-scorer` take them; for a ticket give the "
            f"questions themselves (--sources DIR, hub or embedded)"
        )
