"""A wheel of this code, built without network, and its files as in an installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from rc1_lib.workspace.artifacts import PROJECT_ROOT

_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def sources() -> list[str]:
    """The project's tracked files, and untracked ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT_ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in sorted(set(listed.stdout.split("\n"))) if (PROJECT_ROOT / name).is_file()]


def build_wheel(folder: Path) -> Path:
    """Build a wheel below `folder`, from a copy, because a build leaves files in its source."""
    copy = folder / "source"
    for name in sources():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT_ROOT / name, copy / name)
    subprocess.run([sys.executable, "-c", _BUILD, str(folder)], cwd=copy, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(copy)
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel: Path, site: Path) -> None:
    """Unpack a wheel's files as an installer does."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


def run_there(site: Path, here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this Python with the packages below `site`, in the folder `here`."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run([sys.executable, *arguments], cwd=here, env=environment, capture_output=True, text=True)
