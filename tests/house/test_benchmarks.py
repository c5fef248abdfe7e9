"""What a benchmark imports from the project exists: nothing else of `make test` runs one."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT

BENCHMARKS = sorted((PROJECT_ROOT / "benchmarks").glob("*.py"))
OURS = ("rc1_lib", "flows", "tasks", "deployments", "tests")


def names_in(module: str) -> set[str]:
    """The names at the top of a module, and its submodules; the module is not run."""
    spec = find_spec(module)
    assert spec is not None, f"there is no {module}"
    folders = [Path(one) for one in spec.submodule_search_locations or ()]
    names = {path.stem for folder in folders for path in folder.iterdir()}
    for node in ast.parse(Path(spec.origin).read_text()).body if spec.origin else ():
        match node:
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign() | ast.AnnAssign():
                names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmark_imports_what_exists(path: Path) -> None:
    imported = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OURS
        for alias in node.names
    ]
    assert [f"{module}.{name}" for module, name in imported if name not in names_in(module or "")] == []
