"""A write survives a kill at any moment, and the next start recognizes the state of the file."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from rc1_lib.errors import RC1Error
from rc1_lib.training.checkpoint.atomic_folder import new_folder
from rc1_lib.workspace.artifacts import (
    PROJECT_ROOT,
    FileState,
    Workspace,
    atomic_write,
    default_root,
    file_state,
    recorded_write,
    sha256_tree,
    write_text,
)
from rc1_lib.workspace.file_hashes import sha256_file
from tests.killed_at import run_and_kill_at

NAME = "data/rows.jsonl"
INPUTS = {"seed": 1}


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_modes_of_files_and_folders_follow_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with atomic_write(tmp_path / "a") as stream:
            stream.write(b"x")
        with atomic_write(tmp_path / "secret", mode=0o600) as stream:
            stream.write(b"x")
        with new_folder(tmp_path / "weights") as folder:
            (folder / "inner").mkdir(mode=0o700)
            save_file({"a": np.zeros(2)}, folder / "inner/model.safetensors")  # a library that makes it private
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    usual, inside = 0o666 & ~umask, 0o777 & ~umask
    assert found == {
        "a": usual, "secret": 0o600, "weights": inside, "inner": inside, "model.safetensors": usual,
    }  # fmt: skip


def write(workspace: Workspace, body: bytes, inputs: dict[str, int] = INPUTS) -> None:
    with recorded_write(workspace, NAME, {"inputs": inputs}) as stream:
        stream.write(body)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_a_file_is_missing_then_fresh(workspace: Workspace) -> None:
    assert file_state(workspace, NAME, INPUTS) is FileState.MISSING
    write(workspace, b"one\n")
    assert file_state(workspace, NAME, INPUTS) is FileState.FRESH


def test_a_file_with_other_inputs_is_stale(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    assert file_state(workspace, NAME, {"seed": 2}) is FileState.STALE


def test_a_file_with_a_changed_byte_is_altered(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    workspace.path(NAME).write_bytes(b"two\n")
    assert file_state(workspace, NAME, INPUTS) is FileState.ALTERED


def test_a_file_without_a_manifest_is_foreign(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    workspace.manifest_path(NAME).unlink()
    assert file_state(workspace, NAME, INPUTS) is FileState.FOREIGN


def test_an_error_while_writing_leaves_only_the_old_file(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    with pytest.raises(RuntimeError), recorded_write(workspace, NAME, {"inputs": INPUTS}) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert workspace.path(NAME).read_bytes() == b"one\n"
    assert file_state(workspace, NAME, INPUTS) is FileState.FRESH
    assert [path.name for path in workspace.path("data").iterdir()] == ["rows.jsonl"]


def test_a_kill_between_manifest_and_rename_leaves_the_state_interrupted(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    old = workspace.path(NAME).read_bytes()
    write(workspace, b"two\n")
    workspace.path(NAME).write_bytes(old)  # the disk's contents if the rename never happened
    assert file_state(workspace, NAME, INPUTS) is FileState.INTERRUPTED


def test_sha256sum_reads_the_checksum_file(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    done = subprocess.run(
        ["sha256sum", "-c", "reports/rc1/rows.sha256"], cwd=workspace.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_kill_at_any_moment_leaves_a_known_state_and_a_whole_file(tmp_path: Path) -> None:
    states = set()
    for event in range(1, 100):
        workspace = Workspace(tmp_path / str(event))
        write(workspace, b"one\n", {"seed": 0})
        whole = run_and_kill_at(event, partial(write, workspace, b"two\n"))
        state = file_state(workspace, NAME)
        states.add(state)
        assert workspace.path(NAME).read_bytes() in (b"one\n", b"two\n")
        write(workspace, b"after\n")
        assert file_state(workspace, NAME, INPUTS) is FileState.FRESH
        if whole:
            break
    # Stale: killed after the file was renamed and before its checksum was written.
    assert whole and states == {FileState.FRESH, FileState.INTERRUPTED, FileState.STALE}


@pytest.mark.parametrize("checksum", [None, "0000  data/rows.jsonl\n"])
def test_a_file_with_a_missing_or_wrong_checksum_is_stale(workspace: Workspace, checksum: str | None) -> None:
    write(workspace, b"one\n")
    path = workspace.checksum_path(NAME)
    path.unlink() if checksum is None else path.write_text(checksum)
    assert file_state(workspace, NAME, INPUTS) is FileState.STALE


def test_a_file_of_another_kind_is_foreign(workspace: Workspace) -> None:
    with recorded_write(workspace, NAME, {"kind": "pool", "inputs": INPUTS}) as stream:
        stream.write(b"one\n")
    assert file_state(workspace, NAME, INPUTS, "pool") is FileState.FRESH
    assert file_state(workspace, NAME, INPUTS, "metrics") is FileState.FOREIGN


def test_a_file_does_not_take_the_manifest_of_its_namesake(workspace: Workspace) -> None:
    write(workspace, b"one\n")
    with (
        pytest.raises(RC1Error, match=r"data/rows\.jsonl"),
        recorded_write(workspace, "b/rows.jsonl", {}),
    ):
        pass
    assert file_state(workspace, NAME, INPUTS) is FileState.FRESH
    workspace.path(NAME).unlink()
    with recorded_write(workspace, "b/rows.jsonl", {}) as stream:
        stream.write(b"two\n")
    assert file_state(workspace, "b/rows.jsonl") is FileState.FRESH


_HOLD = """
import sys, time
from pathlib import Path
from rc1_lib.workspace.artifacts import Workspace, recorded_write
with recorded_write(Workspace(Path(sys.argv[1])), "data/rows.jsonl", {}) as stream:
    stream.write(b"half")
    stream.flush()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_second_writer_raises_an_error_until_the_first_ends_or_is_killed(workspace: Workspace) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(workspace.root)], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(RC1Error, match=r"\.write\.lock"):
                write(workspace, b"mine\n")
            assert len(list(workspace.path("data").glob(".*.tmp"))) == 1, "the first writer's file must be left alone"
        finally:
            writer.kill()
    write(workspace, b"mine\n")
    assert [path.name for path in workspace.path("data").iterdir()] == ["rows.jsonl"]


def test_a_folder_or_broken_link_instead_of_a_file_raises_an_error_that_names_it(workspace: Workspace) -> None:
    (workspace.root / "pack/x.json").mkdir(parents=True)
    with pytest.raises(RC1Error, match="pack"):
        sha256_file(workspace.root / "pack")
    with pytest.raises(RC1Error, match=r"x\.json: "):
        sha256_tree(workspace.root / "pack")
    (workspace.root / "pack/x.json").rmdir()
    (workspace.root / "pack/y.json").symlink_to("nowhere")
    with pytest.raises(RC1Error, match=r"y\.json: "):
        sha256_tree(workspace.root / "pack")
    write_text(workspace.root / "data", "a file where a folder should be")
    with pytest.raises(RC1Error, match="data"):
        write(workspace, b"one\n")


def test_default_workspace_is_the_current_folder_if_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT_ROOT)
    assert default_root() == PROJECT_ROOT
    monkeypatch.chdir(PROJECT_ROOT / "docs")
    with pytest.raises(RC1Error, match="docs: is not a workspace"):
        default_root()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RC1Error, match="name a folder with --workspace, or go into a workspace"):
        default_root()
    write(Workspace(tmp_path), b"data")
    assert default_root() == tmp_path.resolve()


def test_file_in_a_folder_linked_to_another_disk_has_the_name_that_the_workspace_gives_it(tmp_path: Path) -> None:
    place, disk = Workspace(tmp_path / "workspace"), tmp_path / "disk"
    (disk / "step_00004").mkdir(parents=True)
    place.root.mkdir()
    (place.root / "checkpoints").symlink_to(disk)
    assert place.name(place.root / "checkpoints/step_00004") == "checkpoints/step_00004"
    assert place.name(disk / "step_00004") == "step_00004"
