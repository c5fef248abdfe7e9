"""House rules that a program can check."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from fnmatch import fnmatch

from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.imports import imports


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=PROJECT_ROOT, capture_output=True, text=True, check=False
    )


def test_ruff_check_passes() -> None:
    done = run("ruff", "check", ".")
    assert done.returncode == 0, done.stdout


def test_ruff_format_check_passes() -> None:
    done = run("ruff", "format", "--check", ".")
    assert done.returncode == 0, done.stdout


def test_mypy_strict_finds_nothing() -> None:
    """It uses the cache of an earlier run, which mypy checks by content."""
    done = run("mypy")
    assert done.returncode == 0, done.stdout


CHECKED = ("rc1_lib", "tasks", "flows", "deployments")
# fmt: off
UNTYPED = {
    "datasets", "mlflow", "openrlhf", "reasoning_gym", "rensa", "verl", "wandb", "xllamacpp",
}
# fmt: on
"""Libraries without types: mypy treats them as `Any` whether or not it skips them."""


def test_modules_that_mypy_skips_are_not_imported() -> None:
    """An imported module that mypy skips would silently be `Any`."""
    with (PROJECT_ROOT / "pyproject.toml").open("rb") as stream:
        settings = tomllib.load(stream)["tool"]["mypy"]
    assert settings["files"] == list(CHECKED)
    skipped, read = (
        [pattern for one in settings["overrides"] if one["follow_imports"] == how for pattern in one["module"]]
        for how in ("skip", "normal")
    )

    def is_one_of(module: str, patterns: list[str]) -> bool:
        return any(fnmatch(module, pattern) or module == pattern.removesuffix(".*") for pattern in patterns)

    imported = {
        module
        for folder in CHECKED
        for path in (PROJECT_ROOT / folder).rglob("*.py")
        for module in imports(path)
        if module.partition(".")[0] not in UNTYPED
    }
    assert "transformers.AutoTokenizer" in imported
    assert [one for one in sorted(imported) if is_one_of(one, skipped) and not is_one_of(one, read)] == []


def test_files_contain_no_machine_path() -> None:
    home, fitted = str(PROJECT_ROOT), PROJECT_ROOT / "configs/weights.json"  # by a run in the checkout
    for folder in (*CHECKED, "tests", "configs", "templates", "docs"):
        for path in (PROJECT_ROOT / folder).rglob("*"):
            if path != fitted and path.suffix in {".py", ".yaml", ".json", ".md", ".toml"}:
                assert home not in path.read_text(encoding="utf-8"), path
