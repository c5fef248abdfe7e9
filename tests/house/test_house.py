"""The house rules that a program can check."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from rc1_lib.artifacts import PROJECT_ROOT
from tests.own_workspace import is_own


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=PROJECT_ROOT, capture_output=True, text=True, check=False
    )


def test_ruff_finds_nothing() -> None:
    done = run("ruff", "check", ".")
    assert done.returncode == 0, done.stdout


def test_the_code_is_formatted() -> None:
    done = run("ruff", "format", "--check", ".")
    assert done.returncode == 0, done.stdout


def test_mypy_strict_finds_nothing() -> None:
    done = run("mypy")
    assert done.returncode == 0, done.stdout


def test_the_library_never_imports_prefect() -> None:
    """ruff's ban sees plain imports; this sees every one in the syntax tree, lazy ones included."""
    offenders = []
    for path in (PROJECT_ROOT / "rc1_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            offenders += [path.name for name in names if name.split(".")[0] == "prefect"]
    assert offenders == []


@pytest.mark.parametrize(
    "folder", ["rc1_lib", "flows", "tasks", "deployments", "tests", "configs", "templates", "docs"]
)
def test_no_file_names_a_machine_path(folder: str) -> None:
    home = str(PROJECT_ROOT)
    for path in (PROJECT_ROOT / folder).rglob("*"):
        if not is_own(str(path)) and path.suffix in {".py", ".yaml", ".json", ".md", ".toml"}:
            assert home not in path.read_text(encoding="utf-8"), path
