"""What ends a training from outside, by its name: the disk is full, or memory is. What to do, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from safetensors import SafetensorError

from rc1_lib.training.checkpoint.manifest import NAME
from rc1_lib.training.checkpoint.names import steps
from rc1_lib.training.checkpoint.save_load import STATE
from rc1_lib.training.diverged import CollapsedError, DivergedError
from rc1_lib.training.ranks.link import LostError
from rc1_lib.training.shortage import DISK, MEMORY, shortage

_RAISED = (MemoryError, RuntimeError, OSError, SafetensorError, LostError)
"""What shortages are raised as."""
_ROOM = "free space, or name another --workspace"


class BreakdownError(Exception):
    """A fault of the machine; what was saved before it is whole."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """What to do where something has run out, by the keys of the configuration that is in use.

    Attributes:
        disk: where the disk is full.
        memory: where memory is.
    """

    disk: str
    memory: str

    def against(self, what: str) -> str:
        """What to do against a shortage."""
        return {DISK: self.disk, MEMORY: self.memory}[what]


def while_learning(update_key: str) -> Remedies:
    """For the steps of a run.

    Args:
        update_key: where the settings of its engine's update stand.
    """
    return Remedies(
        disk="free space, or save less often (training.checkpoints.every_steps)",
        memory=f"free memory, or on a CPU lower training.processes, and it goes on; a lower {update_key}.micro_tokens, "
        f"training.rollout.rows or training.rollout.prefill_tokens makes it another run, which begins anew",
    )


WHILE_PLAYING = Remedies(
    disk=_ROOM,
    memory="free memory, or on a CPU lower training.processes; a lower training.rollout.rows or "
    "training.rollout.prefill_tokens makes it another run, which begins anew",
)
"""For a policy of a run that answers prompts, and learns nothing."""
WARMING_UP = Remedies(
    disk=_ROOM,
    memory="free memory, lower training.warm_start.batch_size, set training.warm_start.steps to 0 (training then "
    "starts from the base itself), or take a smaller base_model",
)
"""For the warm start, which trains all weights of the base."""
FROM_ROWS = Remedies(
    disk="free space, save less often (run.save_steps) or keep fewer checkpoints (run.keep_last)",
    memory="free memory, and it goes on; a lower data.batch_size or data.max_length, model.gradient_checkpointing or "
    "model.quantization: nf4 makes it another run, which begins anew",
)
"""For the small local configuration."""


Differs = Callable[[Mapping[str, Any]], object]
"""What a checkpoint's values and a run's own differ in; nothing of either where they are of one run."""


@contextmanager
def naming_breakdowns(left: Path | str, remedies: Remedies, differs: Differs = lambda _: False) -> Iterator[None]:
    """Say what ended the block, what to do, and what is left.

    Args:
        left: the folder of its checkpoints, or what is left in words.
        remedies: what to do where something has run out.
        differs: of the checkpoints there may be others than the run's own.

    Raises:
        BreakdownError: when the disk or memory is full, here or in a process that shares the work.
        DivergedError: as in the block, with the last good checkpoint named.
    """
    try:
        yield
    except CollapsedError as error:
        raise CollapsedError(f"{error}. {_left(left, differs, error.since)}", error.since) from error
    except DivergedError as error:
        raise DivergedError(f"{error}. {_left(left, differs)}") from error
    except _RAISED as error:
        if not (what := shortage(error)):
            raise
        cause = str(error).partition("\n")[0] or type(error).__name__
        raise BreakdownError(f"{what} ({cause}): {remedies.against(what)}. {_left(left, differs)}") from error


def left_in(folder: Path, before: int | None = None, differs: Differs = lambda _: False) -> str:
    """The run's newest whole checkpoint, of a step before `before` where one is given, as a sentence."""
    for step, path in sorted(steps(folder).items(), reverse=True):
        if (before is None or step < before) and (path / NAME).is_file() and not differs(_values(path)):
            return f"The last good checkpoint is {folder.name}/{path.name}; --resume-from goes on there"
    return "No checkpoint was written before"


def _values(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself; it is not looked at closer, where a disk or memory is full."""
    try:
        values = orjson.loads((checkpoint / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _left(left: Path | str, differs: Differs, before: int | None = None) -> str:
    return left if isinstance(left, str) else left_in(left, before, differs)
