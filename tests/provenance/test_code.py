"""The fingerprint of the code covers every file of the packages: one byte of any of them makes another one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from rc1_lib.provenance import code
from rc1_lib.workspace.artifacts import PROJECT_ROOT

TREE = {
    "rc1_lib/__init__.py": "",
    "rc1_lib/plain.py": "",
    "rc1_lib/room/module.py": "import rc1_lib.plain\n",
    "rc1_lib/room/words/one.yaml": "a: b\n",
    "tasks/step.py": "",
    "flows/__init__.py": "",
    "deployments/containers/Dockerfile": "",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of its own."""
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(code, "CODE_ROOT", tmp_path)
    code.code_sha256.cache_clear()
    yield tmp_path
    code.code_sha256.cache_clear()


def fingerprint() -> str:
    code.code_sha256.cache_clear()
    return code.code_sha256()


def test_another_version_makes_another_fingerprint_and_so_does_a_library_of_training_that_is_missing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {library: code.version(library) for library in code._LIBRARIES}

    def found(**changed: str | None) -> str:
        def version(library: str) -> str:
            here = {**there, **changed}[library]
            if here is None:
                raise PackageNotFoundError(library)
            return here

        monkeypatch.setattr(code, "version", version)
        return fingerprint()

    assert len({found(), found(torch="0.1"), found(torch=None), found(numpy="0.1")}) == 4
    with pytest.raises(PackageNotFoundError):
        found(numpy=None)


@pytest.mark.parametrize("name", TREE)
def test_one_byte_of_any_file_makes_another_fingerprint(tree: Path, name: str) -> None:
    before = fingerprint()
    assert fingerprint() == before
    (tree / name).write_text(TREE[name] + "\n")
    assert fingerprint() != before


@pytest.mark.parametrize("name", ["rc1_lib/another.py", "rc1_lib/plain.pyc", "rc1_lib/plain.so", "tasks/words.yaml"])
def test_a_further_file_makes_another_fingerprint_also_where_it_is_no_source(tree: Path, name: str) -> None:
    before = fingerprint()
    (tree / name).write_bytes(b"")
    assert fingerprint() != before


def test_a_renamed_or_linked_module_makes_another_fingerprint(tree: Path) -> None:
    before = fingerprint()
    (tree / "elsewhere").mkdir()
    (tree / "elsewhere/module.py").touch()
    (tree / "rc1_lib/linked").symlink_to(tree / "elsewhere")
    linked = fingerprint()
    (tree / "rc1_lib/plain.py").rename(tree / "rc1_lib/plainer.py")
    assert len({before, linked, fingerprint()}) == 3


def test_compiled_and_hidden_files_do_not_count(tree: Path) -> None:
    before = fingerprint()
    for name in ("rc1_lib/__pycache__/plain.pyc", "rc1_lib/.cache/some", "rc1_lib/.plain.py.swp"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).touch()
    assert fingerprint() == before


def test_another_version_of_a_library_makes_another_fingerprint(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setattr(code, "version", lambda library: "0.0")
    assert fingerprint() != before


def test_every_source_file_of_the_project_is_covered() -> None:
    covered = {path.relative_to(PROJECT_ROOT).as_posix() for path in code.source_files()}
    assert covered >= {"rc1_lib/run.py", "flows/train.py", "tasks/train.py", "deployments/serve.py"}
    assert covered >= {"rc1_lib/sources/embedded/words/relations.yaml", "rc1_lib/release/report/page.css"}
