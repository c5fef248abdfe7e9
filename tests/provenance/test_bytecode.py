"""Bytecode that Python would run in the place of source, and what can be imported without any, is refused by name."""

from __future__ import annotations

import importlib.util
import marshal
import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.provenance.bytecode import check_bytecode, check_importable

HONEST, POISON = b"said = 1\n", "said = 666\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_bytes(HONEST)
    return path


def cached(path: Path) -> Path:
    return Path(importlib.util.cache_from_source(path))


def poison(path: Path, mode: py_compile.PycInvalidationMode) -> None:
    """Have the bytecode of a module say something else than its source, in a way that Python does not notice."""
    py_compile.compile(str(path), invalidation_mode=mode)
    header = cached(path).read_bytes()[:16]
    cached(path).write_bytes(header + marshal.dumps(compile(POISON, path, "exec")))


def said(path: Path) -> int:
    """What the module says as Python imports it."""
    spec = importlib.util.spec_from_file_location("module", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return int(loaded.said)


@pytest.mark.parametrize("mode", py_compile.PycInvalidationMode)
def test_poisoned_bytecode_runs_and_is_refused(module: Path, mode: py_compile.PycInvalidationMode) -> None:
    poison(module, mode)
    assert said(module) == 666
    with pytest.raises(RC1Error, match=r"module\.cpython-.*pyc: is not what module\.py compiles to"):
        check_bytecode(module, HONEST)


@pytest.mark.parametrize("mode", py_compile.PycInvalidationMode)
def test_bytecode_of_the_source_itself_is_none_of_our_business(
    module: Path, mode: py_compile.PycInvalidationMode
) -> None:
    check_bytecode(module, HONEST)
    py_compile.compile(str(module), invalidation_mode=mode)
    check_bytecode(module, HONEST)
    assert said(module) == 1


def outdated(path: Path) -> None:
    os.utime(path, (1, 1))


@pytest.mark.parametrize(
    "unfit",
    [outdated, lambda path: cached(path).write_bytes(b"of another Python"), lambda path: cached(path).write_bytes(b"")],
)
def test_bytecode_that_python_does_not_take_is_left_alone(module: Path, unfit: Callable[[Path], object]) -> None:
    poison(module, py_compile.PycInvalidationMode.TIMESTAMP)
    unfit(module)
    check_bytecode(module, HONEST)
    assert said(module) == 1


@pytest.mark.parametrize("name", ["rows/__init__.pyc", "rows.pyc", "rows.so", "deep/er/rows.abi3.so"])
def test_what_can_be_imported_and_is_no_source_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "package/deep/er").mkdir(parents=True)
    (tmp_path / "package/rows.py").write_bytes(HONEST)
    (tmp_path / "package/__pycache__").mkdir()
    (tmp_path / "package/__pycache__/rows.cpython-311.pyc").write_bytes(b"looked at with its source")
    check_importable(tmp_path / "package")
    foreign = tmp_path / "package" / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_bytes(b"")
    with pytest.raises(RC1Error, match="can be imported and is no source"):
        check_importable(tmp_path / "package")


def test_a_link_to_a_folder_among_the_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "package/rows").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RC1Error, match="rows: is a link to a folder"):
        check_importable(tmp_path / "package")
