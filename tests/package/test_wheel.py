"""A wheel has every file of a checkout, works outside of one, and has the same code hash."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from rc1_lib import __version__
from rc1_lib.provenance.code import code_sha256
from rc1_lib.workspace.artifacts import PROJECT_ROOT

from .wheels import run_there, sources

PACKAGES = ("rc1_lib/", "tasks/", "flows/", "deployments/")
SHIPPED = ("configs/", "templates/", "models/embedded/")
ALONE = {"LICENSE", "constraints.txt", "pyproject.toml"}
INSIDE = "rc1_lib/_project/"
_RC1 = "import sys; from rc1_lib.cli import main; main(sys.argv[1:])"
_FINGERPRINT = "from rc1_lib.provenance.code import code_sha256; print(code_sha256())"
_GATE = """
from rc1_lib.config.thresholds import GitGate
from rc1_lib.gates.git import git_gate
from rc1_lib.provenance.git import read_code
found = git_gate(read_code(), GitGate(require_commit=True, require_clean=True))
print(found.status, [check.value for check in found.checks])
"""


def test_wheel_has_exactly_the_packages_and_shipped_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        bytes_of = {name: archive.read(name) for name in held}
    wanted = {name: name for name in sources() if name.startswith(PACKAGES)}
    wanted |= {f"{INSIDE}{name}": name for name in sources() if name.startswith(SHIPPED) or name in ALONE}
    assert held == wanted.keys()
    assert [name for name, source in wanted.items() if bytes_of[name] != (PROJECT_ROOT / source).read_bytes()] == []


def test_wheel_has_the_code_hash_of_the_checkout(site: Path, tmp_path: Path) -> None:
    done = run_there(site, tmp_path, "-c", _FINGERPRINT)
    assert (done.stdout.strip(), done.stderr) == (code_sha256(), "")


def test_installed_rc1_writes_nothing_outside_a_workspace(site: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    done = run_there(site, here, "-c", _RC1, "config", "verify")
    assert done.returncode == 2
    assert "is not a workspace (it has neither configs/ppo_scale.yaml nor reports/rc1)" in done.stderr
    assert list(here.iterdir()) == []


def test_folder_made_by_init_is_a_workspace(site: Path, tmp_path: Path) -> None:
    assert run_there(site, tmp_path, "-c", _RC1, "init", "run").returncode == 0
    done = run_there(site, tmp_path / "run", "-c", _RC1, "config", "verify", "--json")
    assert done.returncode == 0, done.stderr
    there = {path.name for path in (tmp_path / "run").iterdir()}
    assert there == {"configs", "logs", "models", "reports", "templates"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "site"], "no file outside the folder"


def test_git_gate_reads_the_package_and_not_a_surrounding_repository(site: Path, tmp_path: Path) -> None:
    for command in (("init",), ("add", "-A"), ("-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "not RC1")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    whole = run_there(site, tmp_path, "-c", _GATE)
    assert whole.stdout.startswith(f"passed ['rc1 {__version__}, SHA-256 "), whole.stderr
    assert whole.stdout.endswith("', 0, True, 0]\n")
    (site / "flows/train.py").write_text("pass\n")
    assert run_there(site, tmp_path, "-c", _GATE).stdout.startswith("failed")
