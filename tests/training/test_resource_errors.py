"""Full disks and full memory are named in every phase of a training, and saved checkpoints stay whole."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import steps
from rc1_lib.training.checkpoint.save_load import describe_newest, load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.resource_errors import (
    DISK,
    MEMORY,
    BreakdownError,
    LostError,
    naming_breakdowns,
    shortage,
)
from rc1_lib.training.resource_errors import (
    WHILE_LEARNING as LEARNING,
)

FEW = ("training.warm_start.steps=1", "training.warm_start.batch_size=2")


@contextmanager
def full_disk(size: int = 200_000) -> Iterator[None]:
    """Let no file grow beyond `size` bytes within this block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def too_much(*_: Any, **__: Any) -> None:
    """Allocate more memory than any machine has, so that torch raises its own error."""
    torch.empty(2**58)


def saved(folder: Path, step: int, size: int = 3) -> Path:
    state = CheckpointState({"adapter": {"a": torch.ones(size)}}, {"step": step})
    return save_checkpoint(state, folder, folder.parent / "ledger.jsonl")


def test_full_disk_during_a_save_keeps_the_checkpoint_before(tmp_path: Path) -> None:
    """safetensors raises its own error."""
    folder = tmp_path / "rc1"
    first = saved(folder, 1)
    message = rf"^{DISK} .*training\.checkpoints\.every_steps.* rc1/step_00001;"
    with (
        pytest.raises(BreakdownError, match=message),
        full_disk(),
        naming_breakdowns(partial(describe_newest, folder), LEARNING),
    ):
        saved(folder, 2, 1_000_000)
    assert list(steps(folder)) == [1] and (folder / "latest").resolve() == first
    assert load_checkpoint(first).step == 1
    saved(folder, 2, 1_000_000)
    assert list(steps(folder)) == [1, 2]


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (MemoryError(), MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), MEMORY),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: not enough memory"), MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), MEMORY),
        (SafetensorError("Error while serializing: No space left on device (os error 28)"), DISK),
        (OSError(errno.ENOSPC, "No space left on device"), DISK),
        (LostError("process 2 of 2 is gone", MEMORY), MEMORY),
        (LostError("process 2 of 2 is gone"), ""),
        (OSError(errno.EIO, "hiccup"), ""),
        (RuntimeError("a bug"), ""),
    ],
    ids=repr,
)
def test_shortage_is_recognized_by_its_error_and_other_errors_pass_unchanged(
    tmp_path: Path, error: Exception, lacking: str
) -> None:
    assert shortage(error) == lacking
    inside = naming_breakdowns(partial(describe_newest, tmp_path), LEARNING)
    with pytest.raises(BreakdownError if lacking else type(error)) as found, inside:
        raise error
    assert found.value.__cause__ is error if lacking else found.value is error


def test_warm_start_names_its_shortage_and_leaves_no_files(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny(*FEW)
    goes_on = r"\. The same command goes on from the warm start's last checkpoint"
    with full_disk(), pytest.raises(BreakdownError, match=rf"^{DISK} .*--workspace{goes_on}"):
        prepare(run)
    assert not REFERENCE.path(run).exists()
    with monkeypatch.context() as patch:
        patch.setattr("rc1_lib.training.warm_start.ShuffledRows.next", too_much)
        with pytest.raises(BreakdownError, match=rf"^{MEMORY} .*training\.warm_start\.batch_size.*{goes_on}"):
            prepare(run)
    assert not REFERENCE.path(run).exists()
    prepare(run)
    assert REFERENCE.path(run).is_dir()
