"""The checkpoint from which a run would resume, as far as that is known without preparing the run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rc1_lib.run import Run
from rc1_lib.training.another_run import differences, refuse_others
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.manifest import steps
from rc1_lib.training.checkpoint.save_load import load_to_resume
from rc1_lib.training.ppo_run import known_facts
from rc1_lib.training.run_paths import LEDGER, paths_of


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a seed's run would resume.

    Attributes:
        step: of the checkpoint; 0 for the beginning.
        damaged: what is wrong with newer checkpoints.
        refusal: why it would not be trained at all: another run's checkpoints are there.
    """

    step: int
    damaged: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def words(self) -> str:
        """As part of a sentence."""
        if self.refusal:
            return "refused"
        return f"from step {self.step}" if self.step else "from the start"


def resume_of(run: Run, seed: int) -> Resume:
    """Check a seed's checkpoints, newest first, until one is intact and matches this configuration, code and pool."""
    folder, ledger = run.workspace.path(paths_of(run, seed).checkpoints), run.workspace.path(LEDGER)
    differs = partial(differences, facts=known_facts(run, seed))
    try:
        refuse_others(folder, ledger, differs)
    except CheckpointError as error:
        return Resume(0, refusal=str(error))
    damaged = list[str]()
    for step, path in sorted(steps(folder).items(), reverse=True):
        if step > run.config.steps:
            continue
        try:
            if not differs(load_to_resume(path, ledger).values):
                return Resume(step, tuple(damaged))
        except CheckpointError as error:
            damaged.append(str(error))
    return Resume(0, tuple(damaged))
