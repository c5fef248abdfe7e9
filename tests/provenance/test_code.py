"""The fingerprint of the code covers every file of the rooms that make a thing, and the libraries that compute it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import get_args

import pytest

from rc1_lib.provenance import code
from rc1_lib.provenance.code import Made
from rc1_lib.provenance.git import read_git
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.imports import imports

MADE: tuple[Made, ...] = get_args(Made)
TREE: dict[str, set[Made]] = {
    "rc1_lib/__init__.py": set(),
    "rc1_lib/cli/help.py": set(),
    "rc1_lib/records.py": {"data", "training", "ticket"},
    "rc1_lib/reward/terms.py": {"data", "training", "ticket"},
    "rc1_lib/sources/words/one.yaml": {"data", "ticket"},
    "rc1_lib/training/trainer.py": {"training", "ticket"},
    "rc1_lib/gates/git.py": {"ticket"},
    "rc1_lib/gate_report.py": {"ticket"},
    "rc1_lib/forecast/learnability.py": {"ticket"},
    "flows/train.py": {"ticket"},
    "deployments/serve.py": set(),
}
"""File -> what its room makes."""
ALONE = {"__version__", "check_words", "errors", "gate_report", "masking", "plots", "provenance", "run"}
"""Rooms that makers import and that change nothing that they make: words, pictures, and what is found where."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small project in place of this one."""
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(code, "CODE_ROOT", tmp_path)
    code.code_sha256.cache_clear()
    yield tmp_path
    code.code_sha256.cache_clear()


def fingerprint(made: Made = "ticket") -> str:
    code.code_sha256.cache_clear()
    return code.code_sha256(made)


def test_library_version_or_missing_training_library_changes_the_fingerprint(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {library: code.version(library) for library in code._LIBRARIES["ticket"]}

    def fingerprint_with(made: Made = "ticket", **changed: str | None) -> str:
        def version(library: str) -> str:
            if (found := {**installed, **changed}[library]) is None:
                raise PackageNotFoundError(library)
            return found

        monkeypatch.setattr(code, "version", version)
        return fingerprint(made)

    changed = (fingerprint_with(torch="0.1"), fingerprint_with(torch=None), fingerprint_with(numpy="0.1"))
    assert len({fingerprint_with(), *changed}) == 4
    assert fingerprint_with("data", torch=None) == fingerprint_with("data") != fingerprint_with("data", numpy="0.1")
    with pytest.raises(PackageNotFoundError):
        fingerprint_with(numpy=None)


def test_patch_release_of_python_is_the_same_code_and_a_minor_one_is_not(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for minor, patch in ((11, 1), (11, 99), (12, 1)):
        monkeypatch.setattr("platform.python_version_tuple", lambda m=minor, p=patch: ("3", str(m), str(p)))
        found.append(fingerprint("training"))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("name", TREE)
def test_changed_byte_changes_the_fingerprint_of_what_its_room_makes(tree: Path, name: str) -> None:
    before = {made: fingerprint(made) for made in MADE}
    assert {made: fingerprint(made) for made in MADE} == before
    (tree / name).write_text("\n")
    assert {made for made in MADE if fingerprint(made) != before[made]} == TREE[name]


def test_repository_around_a_project_that_it_does_not_track_names_no_commit(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    (tmp_path / ".gitignore").write_text("project/\n")
    own = ("-c", "user.name=n", "-c", "user.email=e")

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", tmp_path, *own, *arguments], check=True, capture_output=True)

    git("init")
    git("config", "status.showUntrackedFiles", "no")
    git("add", ".gitignore")
    git("commit", "-m", "m")
    assert read_git(project).commit is None
    git("add", "-f", "project")
    git("commit", "-m", "m")
    (project / "new.py").touch()
    (tmp_path / ".gitignore").write_text("")
    state = read_git(project)
    assert state.commit is not None and "?? project/new.py" in (state.changed or ())


@pytest.mark.parametrize("name", ["rc1_lib/training/another.py", "rc1_lib/training/plain.so"])
def test_added_file_changes_the_fingerprint(tree: Path, name: str) -> None:
    before = fingerprint()
    (tree / name).write_bytes(b"")
    assert fingerprint() != before


def test_renamed_or_linked_module_changes_the_fingerprint(tree: Path) -> None:
    before = fingerprint()
    (tree / "elsewhere").mkdir()
    (tree / "elsewhere/module.py").touch()
    (tree / "rc1_lib/gates/linked").symlink_to(tree / "elsewhere")
    linked = fingerprint()
    (tree / "rc1_lib/records.py").rename(tree / "rc1_lib/training/records.py")
    assert len({before, linked, fingerprint()}) == 3


@pytest.mark.parametrize("made", MADE)
def test_what_the_makers_import_is_in_their_fingerprint(made: Made) -> None:
    """Training reads where pool and metrics lie, and of the calibration the weights and the scores of rows."""
    library = PROJECT_ROOT / "rc1_lib"
    covered = [path.relative_to(library) for path in code.source_files(made) if path.is_relative_to(library)]
    inside = {path.parts[0].removesuffix(".py") for path in covered}
    read = {"difficulty", "pool"} if made == "training" else set[str]()
    makers = [path for path in covered if path.suffix == ".py" and not (read and path.parts[0] == "calibration")]
    modules = {module for path in makers for module in imports(library / path)}
    rooms = {module.split(".")[1] for module in modules if module.startswith("rc1_lib.")}
    assert "training" in inside or made == "data"
    assert rooms - inside - read - ALONE == set()
