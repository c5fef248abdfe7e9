"""The checkpoint from which a run would resume, as far as that is known without preparing the run."""

from __future__ import annotations

from dataclasses import dataclass

from rc1_lib.run import Run
from rc1_lib.training.checkpoint.fault import CheckpointError
from rc1_lib.training.checkpoint.ledger import check_entered
from rc1_lib.training.checkpoint.names import steps
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.ppo_run import configured_facts
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.workspace.file_hashes import sha256_file


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a seed's run would resume.

    Attributes:
        step: of the checkpoint; 0 for the beginning.
        damaged: what is wrong with newer checkpoints.
        others: newer checkpoints of another run -> what differs.
    """

    step: int
    damaged: tuple[str, ...]
    others: dict[int, tuple[str, ...]]

    @property
    def words(self) -> str:
        """As part of a sentence."""
        begins = f"from step {self.step}" if self.step else "from the start"
        replaced = [
            f"step {step} is from another run ({', '.join(names)} differ)" for step, names in self.others.items()
        ]
        return "; ".join([begins, *([f"{replaced[0]} and will be replaced"] if replaced else [])])


def resume_of(run: Run, seed: int) -> Resume:
    """Check a seed's checkpoints, newest first, until one is intact and matches this configuration, code and pool."""
    folder, ledger = run.workspace.path(paths_of(run, seed).checkpoints), run.workspace.path(LEDGER)
    facts = configured_facts(run, seed)
    pool = run.workspace.path(run.config.seed_pool)
    if pool.is_file():
        facts["pool"] = sha256_file(pool)
    damaged, others = list[str](), dict[int, tuple[str, ...]]()
    for step, path in sorted(steps(folder).items(), reverse=True):
        if step > run.config.steps:
            continue
        try:
            values = load_checkpoint(path).values
            check_entered(path, ledger)
        except CheckpointError as error:
            damaged.append(str(error))
            continue
        differ = tuple(name for name, value in facts.items() if values.get(name) != value)
        if not differ:
            return Resume(step, tuple(damaged), others)
        others[step] = differ
    return Resume(0, tuple(damaged), others)
