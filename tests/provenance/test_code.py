"""The fingerprint of the code covers every file of the packages and the versions of the libraries."""

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
    """A small project in place of this one."""
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


def test_library_version_or_missing_training_library_changes_the_fingerprint(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {library: code.version(library) for library in code._LIBRARIES}

    def fingerprint_with(**changed: str | None) -> str:
        def version(library: str) -> str:
            if (found := {**installed, **changed}[library]) is None:
                raise PackageNotFoundError(library)
            return found

        monkeypatch.setattr(code, "version", version)
        return fingerprint()

    changed = (fingerprint_with(torch="0.1"), fingerprint_with(torch=None), fingerprint_with(numpy="0.1"))
    assert len({fingerprint_with(), *changed}) == 4
    with pytest.raises(PackageNotFoundError):
        fingerprint_with(numpy=None)


@pytest.mark.parametrize("name", TREE)
def test_changed_byte_of_any_file_changes_the_fingerprint(tree: Path, name: str) -> None:
    before = fingerprint()
    assert fingerprint() == before
    (tree / name).write_text(TREE[name] + "\n")
    assert fingerprint() != before


@pytest.mark.parametrize("name", ["rc1_lib/another.py", "rc1_lib/plain.so"])
def test_added_file_changes_the_fingerprint(tree: Path, name: str) -> None:
    before = fingerprint()
    (tree / name).write_bytes(b"")
    assert fingerprint() != before


def test_renamed_or_linked_module_changes_the_fingerprint(tree: Path) -> None:
    before = fingerprint()
    (tree / "elsewhere").mkdir()
    (tree / "elsewhere/module.py").touch()
    (tree / "rc1_lib/linked").symlink_to(tree / "elsewhere")
    linked = fingerprint()
    (tree / "rc1_lib/plain.py").rename(tree / "rc1_lib/plainer.py")
    assert len({before, linked, fingerprint()}) == 3


def test_every_source_file_of_the_project_is_covered() -> None:
    covered = {path.relative_to(PROJECT_ROOT).as_posix() for path in code.source_files()}
    assert covered >= {"rc1_lib/run.py", "flows/train.py", "tasks/train.py", "deployments/serve.py"}
    assert covered >= {"rc1_lib/sources/embedded/words/relations.yaml", "rc1_lib/release/report.html.j2"}
