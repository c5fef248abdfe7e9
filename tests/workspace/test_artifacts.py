"""Writing survives being killed at any moment, and a later start can tell what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import (
    FileState,
    Workspace,
    atomic_write,
    file_state,
    read_manifest,
    recorded_write,
    sha256_tree,
    write_text,
)
from rc1_lib.workspace.file_hashes import sha256_file

NAME = "data/rows.jsonl"
INPUTS = {"seed": 1}


def write(place: Workspace, body: bytes, inputs: dict[str, int] = INPUTS) -> None:
    with recorded_write(place, NAME, {"inputs": inputs}) as stream:
        stream.write(body)


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_a_file_is_missing_then_fresh(place: Workspace) -> None:
    assert file_state(place, NAME, INPUTS) is FileState.MISSING
    write(place, b"one\n")
    assert file_state(place, NAME, INPUTS) is FileState.FRESH


def test_other_inputs_make_it_stale(place: Workspace) -> None:
    write(place, b"one\n")
    assert file_state(place, NAME, {"seed": 2}) is FileState.STALE


def test_a_changed_byte_makes_it_altered(place: Workspace) -> None:
    write(place, b"one\n")
    place.path(NAME).write_bytes(b"two\n")
    assert file_state(place, NAME, INPUTS) is FileState.ALTERED


def test_a_file_without_a_manifest_is_foreign(place: Workspace) -> None:
    write(place, b"one\n")
    place.manifest_path(NAME).unlink()
    assert file_state(place, NAME, INPUTS) is FileState.FOREIGN


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(place: Workspace) -> None:
    write(place, b"one\n")
    with pytest.raises(RuntimeError), recorded_write(place, NAME, {"inputs": INPUTS}) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert place.path(NAME).read_bytes() == b"one\n"
    assert file_state(place, NAME, INPUTS) is FileState.FRESH
    assert [path.name for path in place.path("data").iterdir()] == ["rows.jsonl"]


def test_a_kill_between_manifest_and_rename_is_seen_as_interrupted(place: Workspace) -> None:
    write(place, b"one\n")
    old = place.path(NAME).read_bytes()
    write(place, b"two\n")
    place.path(NAME).write_bytes(old)  # what the disk holds when the rename never happened
    assert file_state(place, NAME, INPUTS) is FileState.INTERRUPTED


def test_the_checksum_file_is_in_the_form_that_sha256sum_reads(place: Workspace) -> None:
    write(place, b"one\n")
    done = subprocess.run(
        ["sha256sum", "-c", "reports/rc1/rows.sha256"], cwd=place.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


_LOOP = """
import sys
from pathlib import Path
from rc1_lib.workspace.artifacts import Workspace, recorded_write
place = Workspace(Path(sys.argv[1]))
number = 0
print("ready", flush=True)
while True:
    number += 1
    with recorded_write(place, "data/rows.jsonl", {"inputs": {"number": number}}) as stream:
        for _ in range(200):
            stream.write(b"%d\\n" % number * 50)
"""


@pytest.mark.parametrize("moment", [0.011, 0.023, 0.037, 0.052, 0.071, 0.097])
def test_kill_9_at_any_moment_leaves_a_state_that_is_understood(tmp_path: Path, moment: float) -> None:
    place = Workspace(tmp_path)
    with subprocess.Popen([sys.executable, "-c", _LOOP, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(moment)  # the moment of the kill is the subject of the test
        os.kill(writer.pid, signal.SIGKILL)
    state = file_state(place, NAME)
    # Stale: killed when the file was in place and its checksum was not.
    assert state in (FileState.FRESH, FileState.STALE, FileState.INTERRUPTED, FileState.MISSING)
    if state is not FileState.MISSING:
        lines = place.path(NAME).read_bytes().splitlines()
        assert len(set(lines)) == 1, "a file must hold one write, whole"
        assert len(lines) == 200 * 50
    write(place, b"after\n")
    assert file_state(place, NAME, INPUTS) is FileState.FRESH


def test_reports_name_paths_inside_the_workspace_and_never_the_machines(place: Workspace, tmp_path: Path) -> None:
    assert place.name(tmp_path / "data/rows.jsonl") == "data/rows.jsonl"
    assert place.name(Path("/elsewhere/on/this/machine/file.json")) == "file.json"


def test_text_is_written_whole(tmp_path: Path) -> None:
    write_text(tmp_path / "deep/er/a.txt", "你好\n")
    assert (tmp_path / "deep/er/a.txt").read_text(encoding="utf-8") == "你好\n"
    with atomic_write(tmp_path / "b.bin") as stream:
        stream.write(b"x")
    assert (tmp_path / "b.bin").read_bytes() == b"x"


def test_a_damaged_manifest_counts_as_none(place: Workspace) -> None:
    write(place, b"one\n")
    place.manifest_path(NAME).write_text("not json")
    assert read_manifest(place, NAME) is None
    assert file_state(place, NAME, INPUTS) is FileState.FOREIGN


def test_what_a_killed_writer_left_behind_is_swept_away(place: Workspace) -> None:
    place.path("data").mkdir()
    (place.path("data") / ".rows.jsonl.abc.tmp").write_bytes(b"half a file")
    write(place, b"one\n")
    assert [path.name for path in place.path("data").iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize("checksum", [None, "0000  data/rows.jsonl\n"])
def test_a_checksum_that_is_missing_or_of_another_write_makes_it_stale(place: Workspace, checksum: str | None) -> None:
    write(place, b"one\n")
    path = place.checksum_path(NAME)
    path.unlink() if checksum is None else path.write_text(checksum)
    assert file_state(place, NAME, INPUTS) is FileState.STALE


@pytest.mark.parametrize("inputs", [INPUTS, {"seed": 2}])
def test_a_file_of_another_kind_is_foreign_whatever_it_was_made_from(place: Workspace, inputs: dict[str, int]) -> None:
    with recorded_write(place, NAME, {"kind": "pool", "inputs": INPUTS}) as stream:
        stream.write(b"one\n")
    assert file_state(place, NAME, INPUTS, "pool") is FileState.FRESH
    assert file_state(place, NAME, inputs, "metrics") is FileState.FOREIGN


def test_a_file_never_passes_under_the_manifest_of_its_namesake(place: Workspace) -> None:
    write(place, b"one\n")
    write_text(place.path("other/rows.jsonl"), "one\n")
    assert file_state(place, "other/rows.jsonl", INPUTS) is FileState.FOREIGN


def test_a_file_does_not_take_the_manifest_of_its_namesake(place: Workspace) -> None:
    write(place, b"one\n")
    with (
        pytest.raises(RC1Error, match=r"data/rows\.jsonl"),
        recorded_write(place, "b/rows.jsonl", {}),
    ):
        pass
    assert file_state(place, NAME, INPUTS) is FileState.FRESH
    place.path(NAME).unlink()
    with recorded_write(place, "b/rows.jsonl", {}) as stream:
        stream.write(b"two\n")
    assert file_state(place, "b/rows.jsonl") is FileState.FRESH


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


def test_a_second_writer_is_refused_until_the_first_has_ended_even_by_kill_9(place: Workspace) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(place.root)], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(RC1Error, match=r"\.write\.lock"):
                write(place, b"mine\n")
            assert len(list(place.path("data").glob(".*.tmp"))) == 1, "the first writer's file must be left alone"
        finally:
            writer.kill()
    write(place, b"mine\n")
    assert [path.name for path in place.path("data").iterdir()] == ["rows.jsonl"]


def test_what_is_no_file_is_a_sentence(place: Workspace) -> None:
    (place.root / "pack/x.json").mkdir(parents=True)
    with pytest.raises(RC1Error, match="pack"):
        sha256_file(place.root / "pack")
    with pytest.raises(RC1Error, match=r"x\.json: "):
        sha256_tree(place.root / "pack")
    (place.root / "pack/x.json").rmdir()
    (place.root / "pack/y.json").symlink_to("nowhere")
    with pytest.raises(RC1Error, match=r"y\.json: "):
        sha256_tree(place.root / "pack")
    write_text(place.root / "data", "a file where a folder should be")
    with pytest.raises(RC1Error, match="data"):
        write(place, b"one\n")
