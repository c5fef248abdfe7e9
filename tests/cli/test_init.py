"""`rc1 init` copies every file that a run reads, and overwrites none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rc1_lib.config.file import load_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.folder import shipped

from .conftest import Rc1

COPIED = ("configs", "templates", "models/embedded")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", *COPIED], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    return sorted(listed.stdout.split())


def test_init_copies_every_shipped_file_unchanged(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("init", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].endswith(f"files in {tmp_path / 'run'}")
    found = sorted(path.relative_to(tmp_path / "run").as_posix() for path in (tmp_path / "run").rglob("*.*"))
    assert found == tracked() == sorted(name for files in shipped().values() for name in files)
    assert [
        name for name in found if (tmp_path / "run" / name).read_bytes() != (PROJECT_ROOT / name).read_bytes()
    ] == []
    assert load_config(tmp_path / "run/configs/local.yaml") == load_config(PROJECT_ROOT / "configs/local.yaml")


def test_init_goes_on_after_a_kill(rc1: Rc1, tmp_path: Path) -> None:
    assert rc1("init", tmp_path).code == 0
    (tmp_path / "configs/ppo_scale.yaml").unlink()
    (half := tmp_path / "models/embedded/.model.safetensors.0a1b.tmp").touch()  # it would count in the base's hash
    assert rc1("init", tmp_path).code == 0
    assert (tmp_path / "configs/ppo_scale.yaml").is_file() and not half.exists()


def test_existing_file_makes_init_fail_and_write_nothing(rc1: Rc1, tmp_path: Path) -> None:
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
