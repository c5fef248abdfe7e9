"""Which source a fingerprint covers is read from the imports: whatever is imported, however, counts; nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rc1_lib.provenance import code

Write = Callable[..., None]
TREE = {
    "rc1_lib/__init__.py": "",
    "rc1_lib/plain.py": "",
    "rc1_lib/other.py": "",
    "rc1_lib/deep.py": "",
    "rc1_lib/room/__init__.py": "from rc1_lib import of_the_package\n",
    "rc1_lib/of_the_package.py": "",
    "rc1_lib/room/sibling.py": "",
    "rc1_lib/room/module.py": "import rc1_lib.deep\n",
    "rc1_lib/room/words/one.yaml": "a: b\n",
    "rc1_lib/room/inner/__init__.py": "",
    "rc1_lib/room/inner/words.yaml": "c: d\n",
    "tasks/__init__.py": "",
    "tasks/step.py": "",
    "flows/__init__.py": "",
    "deployments/__init__.py": "",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A project of its own; `tree({"rc1_lib/root.py": "..."})` adds files to it."""

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        code.forget()

    write(TREE)
    monkeypatch.setattr(code, "PROJECT_ROOT", tmp_path)
    return write


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What was read of another project must not be taken for this one's, neither here nor by the tests behind."""
    code.forget()
    yield
    code.forget()


def covered(*roots: str) -> set[str]:
    return {path.relative_to(code.PROJECT_ROOT).as_posix() for path in code.covered(*roots)}


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        ("import rc1_lib.plain", {"rc1_lib/plain.py"}),
        ("import rc1_lib.plain as p, rc1_lib.other", {"rc1_lib/plain.py", "rc1_lib/other.py"}),
        ("from rc1_lib.plain import x", {"rc1_lib/plain.py"}),
        ("from rc1_lib import plain", {"rc1_lib/plain.py"}),
        ("from rc1_lib import (\n    plain,\n    other as o,\n)", {"rc1_lib/plain.py", "rc1_lib/other.py"}),
        ("from . import plain", {"rc1_lib/plain.py"}),
        ("from .plain import x", {"rc1_lib/plain.py"}),
        ("def f():\n    import rc1_lib.plain", {"rc1_lib/plain.py"}),
        ("class A:\n    def f(self):\n        with x:\n            from rc1_lib import plain", {"rc1_lib/plain.py"}),
        ("try:\n    pass\nexcept E:\n    import rc1_lib.plain\nfinally:\n    import rc1_lib.other",
         {"rc1_lib/plain.py", "rc1_lib/other.py"}),
        ("match x:\n    case 1:\n        import rc1_lib.plain", {"rc1_lib/plain.py"}),
        ("for x in y:\n    pass\nelse:\n    import rc1_lib.plain", {"rc1_lib/plain.py"}),
        ("if TYPE_CHECKING:\n    import rc1_lib.plain\nelse:\n    import rc1_lib.other", {"rc1_lib/other.py"}),
        ("if typing.TYPE_CHECKING:\n    import rc1_lib.plain", set()),
        ("import json\nfrom rc1_lib.plain_text import x", set()),
        ("import tasks.step", {"tasks/__init__.py", "tasks/step.py"}),
        ('"""import rc1_lib.plain"""', set()),
    ],
)  # fmt: skip
def test_every_kind_of_import_is_followed(tree: Write, source: str, reached: set[str]) -> None:
    tree({"rc1_lib/root.py": source + "\n"})
    assert covered("rc1_lib.root") == {"rc1_lib/__init__.py", "rc1_lib/root.py", *reached}


def test_imports_of_imports_and_what_a_package_itself_imports_are_covered(tree: Write) -> None:
    tree({"rc1_lib/root.py": "from rc1_lib.room.module import x\n"})
    assert covered("rc1_lib.root") == {
        "rc1_lib/__init__.py", "rc1_lib/root.py", "rc1_lib/room/__init__.py", "rc1_lib/room/module.py",
        "rc1_lib/deep.py", "rc1_lib/of_the_package.py", "rc1_lib/room/words/one.yaml",
    }  # fmt: skip


def test_modules_that_import_each_other_end(tree: Write) -> None:
    tree({"rc1_lib/root.py": "import rc1_lib.back\n", "rc1_lib/back.py": "import rc1_lib.root\n"})
    assert covered("rc1_lib.root") == covered("rc1_lib.back")


def test_of_a_package_every_module_counts(tree: Write) -> None:
    assert covered("rc1_lib.room") >= {"rc1_lib/room/sibling.py", "rc1_lib/room/inner/words.yaml", "rc1_lib/deep.py"}
    assert "rc1_lib/plain.py" not in covered("rc1_lib.room")


def test_without_roots_everything_is_covered(tree: Write, tmp_path: Path) -> None:
    (tmp_path / "rc1_lib/__pycache__").mkdir()
    (tmp_path / "rc1_lib/__pycache__/plain.cpython-311.pyc").write_bytes(b"x")
    assert covered() == set(TREE)


@pytest.mark.parametrize("name", ["rc1_lib/root.py", "rc1_lib/deep.py", "rc1_lib/room/words/one.yaml"])
def test_one_byte_of_what_is_covered_makes_another_fingerprint(tree: Write, name: str) -> None:
    files = {**TREE, "rc1_lib/root.py": "import rc1_lib.room.module\n"}
    tree(files)
    before, whole = code.code_sha256("rc1_lib.root"), code.code_sha256()
    assert code.code_sha256("rc1_lib.root") == before
    tree({name: files[name] + "\n"})
    assert code.code_sha256("rc1_lib.root") != before
    assert code.code_sha256() != whole


@pytest.mark.parametrize("name", ["rc1_lib/plain.py", "rc1_lib/room/sibling.py", "rc1_lib/room/inner/words.yaml"])
def test_one_byte_of_what_is_not_covered_leaves_the_fingerprint(tree: Write, name: str) -> None:
    tree({"rc1_lib/root.py": "import rc1_lib.room.module\n"})
    before, whole = code.code_sha256("rc1_lib.root"), code.code_sha256()
    tree({name: TREE[name] + "\n"})
    assert code.code_sha256("rc1_lib.root") == before
    assert code.code_sha256() != whole


@pytest.mark.parametrize("name", TREE)
def test_one_byte_of_any_file_makes_another_fingerprint_of_everything(tree: Write, name: str) -> None:
    before = code.code_sha256()
    tree({name: TREE[name] + "\n"})
    assert code.code_sha256() != before


def test_a_renamed_module_makes_another_fingerprint(tree: Write, tmp_path: Path) -> None:
    before = code.code_sha256()
    (tmp_path / "rc1_lib/plain.py").rename(tmp_path / "rc1_lib/plainer.py")
    code.forget()
    assert code.code_sha256() != before


@pytest.mark.parametrize("root", ["rc1_lib.nothing", "json", "tasks.nothing"])
def test_a_root_that_is_no_module_of_the_project_is_a_fault(tree: Write, root: str) -> None:
    with pytest.raises(FileNotFoundError, match="no Python source below the project's root"):
        code.code_sha256(root)
