"""`rc1 init`: a folder with all that a run reads, and nothing overwritten."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from rc1_lib.config.file import load_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.folder import PARTS, shipped

from .conftest import Rc1

LAID = ("configs", "templates", "models")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", *LAID], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    return sorted(listed.stdout.split())


def test_a_folder_has_all_that_is_shipped_byte_for_byte(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("init", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == f"next: rc1 preflight --workspace {tmp_path / 'run'}"
    found = sorted(path.relative_to(tmp_path / "run").as_posix() for path in (tmp_path / "run").rglob("*.*"))
    assert found == tracked() == sorted(name for files in shipped().values() for name in files)
    assert [
        name for name in found if (tmp_path / "run" / name).read_bytes() != (PROJECT_ROOT / name).read_bytes()
    ] == []
    assert load_config(tmp_path / "run/configs/local.yaml") == load_config(PROJECT_ROOT / "configs/local.yaml")


def test_a_document_names_the_files(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("init", tmp_path, "--json")
    assert json.loads(done.out) == {
        "folder": str(tmp_path), "files": [name for part in shipped().values() for name in part],
    }  # fmt: skip


def test_nothing_is_overwritten_and_nothing_is_half_written(rc1: Rc1, tmp_path: Path) -> None:
    own = tmp_path / "templates/pack_v2/maths.en.json"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    done = rc1("init", tmp_path)
    assert done.code == 2
    assert done.err == (
        f"rc1: {own}: already exists; nothing is overwritten; name another folder, or move such files away\n"
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]
    assert own.read_text() == "mine"


def test_the_checkout_itself_is_not_laid_out(rc1: Rc1) -> None:
    done = rc1("init", PROJECT_ROOT)
    assert done.code == 2
    assert "already exists, and 31 more" in done.err


def test_a_file_is_no_folder(rc1: Rc1, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = rc1("init", tmp_path / "file")
    assert (done.code, done.err) == (
        2,
        f"rc1: {tmp_path / 'file'}: cannot create this folder, because a file of that name is in the way\n",
    )


def test_a_link_that_leads_nowhere_is_not_written_through(rc1: Rc1, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/base.yaml").symlink_to(tmp_path / "elsewhere")
    assert rc1("init", tmp_path).code == 2
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_laid_out_is_what_a_wheel_has() -> None:
    text = (PROJECT_ROOT / "setup.py").read_text(encoding="utf-8")
    assert [pattern for pattern in PARTS.values() if f'"{pattern}"' not in text] == []
