"""What ends a training from outside has a name, and what was saved before is whole."""

from __future__ import annotations

import errno
import resource
from pathlib import Path

import pytest
import torch

from rc1_lib.training.breakdown import BreakdownError, left_in, naming_breakdowns, shortage
from rc1_lib.training.checkpoint.load import load_checkpoint
from rc1_lib.training.checkpoint.names import steps
from rc1_lib.training.checkpoint.save import save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.diverged import CollapsedError, DivergedError


def saved(folder: Path, step: int, size: int = 3) -> Path:
    state = CheckpointState.build(step, {"adapter": {"a": torch.ones(size)}}, {}, {})
    return save_checkpoint(state, folder, folder.parent / "ledger.jsonl")


def test_a_disk_that_is_full_while_saving_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    """Really full: files may not grow beyond what is left, and safetensors says so in an error of its own."""
    folder = tmp_path / "rc1"
    first = saved(folder, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(
        BreakdownError, match=r"the disk is full .*free space.* The last good checkpoint is rc1/step_00001"
    ):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
            with naming_breakdowns(folder):
                saved(folder, 2, 1_000_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(steps(folder)) == [1] and (folder / "latest").resolve() == first
    assert load_checkpoint(first).step == 1
    saved(folder, 2, 1_000_000)
    assert list(steps(folder)) == [1, 2]


def test_memory_that_is_full_is_named_as_torch_tells_it(tmp_path: Path) -> None:
    with (
        pytest.raises(BreakdownError, match=r"memory is full .* No checkpoint"),
        naming_breakdowns(tmp_path),
    ):
        torch.empty(2**58)
    with pytest.raises(BreakdownError, match="memory is full"), naming_breakdowns(tmp_path):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB\nmore words")


@pytest.mark.parametrize("error", [OSError(errno.EIO, "hiccup"), RuntimeError("a bug"), ValueError("a bug")])
def test_what_is_no_shortage_stays_what_it_is(tmp_path: Path, error: Exception) -> None:
    assert shortage(error) == ""
    with pytest.raises(type(error)) as found, naming_breakdowns(tmp_path):
        raise error
    assert found.value is error


def test_the_last_good_checkpoint_is_the_one_before_the_first_sign(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        saved(tmp_path / "rc1", step)
    (tmp_path / "rc1/step_00009").mkdir()  # one that was never finished
    assert "rc1/step_00003;" in left_in(tmp_path / "rc1")
    with pytest.raises(CollapsedError, match=r"lost\. .* rc1/step_00001") as fault, naming_breakdowns(tmp_path / "rc1"):
        raise CollapsedError("lost", 2)
    assert fault.value.since == 2
    with pytest.raises(DivergedError, match=r"not finite\. .* rc1/step_00003"), naming_breakdowns(tmp_path / "rc1"):
        raise DivergedError("not finite")
