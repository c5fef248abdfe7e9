"""Full disks and full memory are named in every phase of a training, and saved checkpoints stay whole."""

from __future__ import annotations

import errno
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from pydantic import BaseModel
from safetensors import SafetensorError

from rc1_lib.config.run_config import RunConfig
from rc1_lib.evaluation.policies import evaluate_run
from rc1_lib.run import Run
from rc1_lib.training.another_run import AnotherRunError, others_in
from rc1_lib.training.checkpoint.manifest import fingerprint, folder_name, steps
from rc1_lib.training.checkpoint.save_load import describe_newest, load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.dry_run import dry_run
from rc1_lib.training.engines.pure_pt_sft import PurePtSFT
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.resource_errors import (
    DISK,
    FROM_ROWS,
    MEMORY,
    WARMING_UP,
    WHILE_PLAYING,
    BreakdownError,
    LostError,
    Remedies,
    naming_breakdowns,
    shortage,
)
from rc1_lib.training.resource_errors import (
    WHILE_LEARNING as LEARNING,
)
from rc1_lib.training.train_config import TrainConfig
from rc1_lib.training.train_local import train_small
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace
from tests.training.tiny import write_base

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


def test_torch_out_of_memory_is_named_with_remedies(tmp_path: Path) -> None:
    message = rf"^{MEMORY} .*training\.processes.* training\.update\.micro_tokens.* {describe_newest(tmp_path)}"
    with pytest.raises(BreakdownError, match=message), naming_breakdowns(partial(describe_newest, tmp_path), LEARNING):
        too_much()
    with (
        pytest.raises(BreakdownError, match=f"^{MEMORY} .*CUDA"),
        naming_breakdowns(partial(describe_newest, tmp_path), LEARNING),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB\nmore words")


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (MemoryError(), MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), MEMORY),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: not enough memory"), MEMORY),
        (RuntimeError("unable to mmap 3547200 bytes from file <base>: Cannot allocate memory (12)"), MEMORY),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), MEMORY),
        (SafetensorError("Error while serializing: Cannot allocate memory (os error 12)"), MEMORY),
        (SafetensorError("Error while serializing: No space left on device (os error 28)"), DISK),
        (OSError(errno.ENOSPC, "No space left on device"), DISK),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), DISK),
        (LostError("process 2 of 2 is gone", MEMORY), MEMORY),
        (LostError("process 2 of 2 is gone"), ""),
        (OSError(errno.EIO, "hiccup"), ""),
        (SafetensorError("header too large"), ""),
        (RuntimeError("a bug"), ""),
        (ValueError("out of memory"), ""),
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


def keys_of(model: Any, before: str = "") -> set[str]:
    """All dotted keys and sections of a configuration model."""
    found = set[str]()
    for name, field in model.model_fields.items():
        found.add(f"{before}{name}")
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found |= keys_of(kind, f"{before}{name}.")
    return found


@pytest.mark.parametrize(
    ("remedies", "model"),
    [
        (WHILE_PLAYING, RunConfig),
        (WARMING_UP, RunConfig),
        (FROM_ROWS, TrainConfig),
        (LEARNING, RunConfig),
    ],
)
def test_every_advised_key_exists_in_the_configuration(remedies: Remedies, model: type[BaseModel]) -> None:
    keys = keys_of(model)
    for what in (DISK, MEMORY):
        named = set(re.findall(r"\b[a-z_]+(?:\.[a-z_]+)+\b", remedies.against(what)))
        assert named <= keys, named - keys
    assert re.search(r"\b[a-z_]+\.[a-z_]+\b", remedies.memory)


def test_newest_whole_checkpoint_is_named_at_all_or_before_a_step(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        saved(tmp_path / "rc1", step)
    (tmp_path / "rc1/step_00009").mkdir()  # unfinished
    assert "rc1/step_00003;" in describe_newest(tmp_path / "rc1")
    assert "rc1/step_00001;" in describe_newest(tmp_path / "rc1", 2)
    inside = naming_breakdowns(partial(describe_newest, tmp_path / "rc1"), LEARNING)
    with pytest.raises(DivergedError, match=r"not finite\. .* rc1/step_00003"), inside:
        raise DivergedError("not finite")


def test_checkpoints_of_another_run_are_found_by_their_facts(tmp_path: Path) -> None:
    folder = tmp_path / "rc1"
    for step, seed in ((1, 7), (2, 8)):
        state = CheckpointState({"adapter": {"a": torch.ones(3)}}, {"seed": seed, "step": step})
        save_checkpoint(state, folder, tmp_path / "ledger.jsonl")
    for seed, steps_of_others in ((7, [2]), (8, [1]), (9, [1, 2])):
        found = others_in(folder, lambda values, mine=seed: ["seed"] if values.get("seed") != mine else [])
        assert [path.name for path in found] == [folder_name(step) for step in steps_of_others]
    (folder / "step_00002/state.json").write_text("{")
    assert [path.name for path in others_in(folder, lambda _: ["seed"])] == ["step_00001"], "damaged"


def test_warm_start_names_its_shortage_and_leaves_no_files(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny(*FEW)
    saves_nothing = r"\. A warm start saves nothing"
    with full_disk(), pytest.raises(BreakdownError, match=rf"^{DISK} .*--workspace{saves_nothing}"):
        prepare(run)
    assert not REFERENCE.path(run).exists()
    with monkeypatch.context() as patch:
        patch.setattr("rc1_lib.training.warm_start.ShuffledRows.next", too_much)
        with pytest.raises(BreakdownError, match=rf"^{MEMORY} .*training\.warm_start\.batch_size.*{saves_nothing}"):
            prepare(run)
    assert not REFERENCE.path(run).exists()
    prepare(run)
    assert REFERENCE.path(run).is_dir()


def test_small_configuration_names_its_shortage_with_its_own_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write_base(tmp_path / "base", pad_token=None)
    short = (
        f"model.base={base}", "run.device_pref=[cpu]", "run.mixed_precision=fp32", "run.max_steps=2",
        "run.save_steps=1", "data.max_length=96", "engine.name=pure_pt_sft",
    )  # fmt: skip

    def train(*overrides: str) -> None:
        shipped = PROJECT_ROOT / "configs/train_local.yaml"
        train_small(shipped, Workspace(tmp_path / "work"), None, [*short, *overrides], lambda _: None)

    with (
        full_disk(20_000),
        pytest.raises(
            BreakdownError, match=rf"^{DISK} .*run\.save_steps.*run\.keep_last.* {describe_newest(tmp_path)}"
        ),
    ):
        train()
    train("run.max_steps=1")
    with monkeypatch.context() as patch:
        patch.setattr(PurePtSFT, "train_step", too_much)
        message = rf"^{MEMORY} .*data\.batch_size.* local/step_00001; .*--resume-from"
        with pytest.raises(BreakdownError, match=message):
            train()
        with pytest.raises(BreakdownError, match=rf"^{MEMORY} .*callbacks"):
            train("callbacks=[logging]")
        with pytest.raises(AnotherRunError, match=r": engine\.lr .*--start-over"):
            train("engine.lr=0.5")


def test_evaluation_and_pilot_name_their_shortage(tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny("steps=1", "gates.shared.resamples=20")
    prepared, seed = prepare(run), run.config.seeds[0]
    finished = {seed: fingerprint(advance(prepared, seed, 1, lambda _: None))}
    with full_disk(100), pytest.raises(BreakdownError, match=rf"^{DISK} .*--workspace\. .*\blost\b"):
        evaluate_run(prepared, finished)
    with monkeypatch.context() as patch:
        patch.setattr(TorchPPO, "play", too_much)
        message = rf"^{MEMORY} .*training\.rollout\.rows.*\. .*\blost\b"
        with pytest.raises(BreakdownError, match=message):
            evaluate_run(prepared, finished)
        with (
            pytest.raises(BreakdownError, match=rf"^{MEMORY} .*update\.micro_tokens.*\. Nothing "),
            dry_run(prepared, seed, TorchPPO()) as pilot,
        ):
            pilot.strategy.on_batch(pilot.next_batch())
    assert evaluate_run(prepared, finished).report


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")], ids=repr)
def test_checkpoint_that_exceeds_memory_is_not_called_damaged(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    run = tiny("steps=2", "training.checkpoints.every_steps=1")
    prepared, seed, messages = prepare(run), run.config.seeds[0], list[str]()
    advance(prepared, seed, 1, messages.append)

    def full(_: Path) -> bytes:
        raise error

    monkeypatch.setattr("rc1_lib.training.checkpoint.manifest.read_regular", full)
    messages.clear()
    with pytest.raises(BreakdownError, match=rf"^{MEMORY} .* rc1/step_00001;"):
        advance(prepared, seed, 2, messages.append)
    assert not messages, "a checkpoint reported as damaged would be replaced"
