"""The word files of the embedded source: a fault raises an error that names file and key."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rc1_lib.errors import SourceError
from rc1_lib.sources.embedded import lexicon, relations, scene, story_words, word_files
from rc1_lib.sources.embedded.multihop import forms as multihop_forms
from rc1_lib.sources.embedded.multihop import wordings as multihop_wordings
from rc1_lib.sources.embedded.yesno import wordings as yesno_wordings

READERS = (
    relations.relations, lexicon.lexicon, scene._draws, multihop_forms, multihop_wordings, yesno_wordings,
    story_words.story_words,
)  # fmt: skip
Change = Callable[[Any], object]


def clear_caches() -> None:
    for reader in READERS:
        reader.cache_clear()  # type: ignore[attr-defined]


def read_all() -> None:
    multihop_forms()
    for lang in ("en", "zh"):
        story_words.story_words(lang)
        multihop_wordings(lang)
        yesno_wordings(lang)


@pytest.fixture
def word_files_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the word files that a test may damage."""
    shutil.copytree(word_files.FOLDER, tmp_path / "words")
    monkeypatch.setattr(word_files, "FOLDER", tmp_path / "words")
    clear_caches()
    yield tmp_path / "words"
    clear_caches()


@pytest.fixture
def error_of(word_files_copy: Path) -> Callable[[str, Change], str]:
    """Change a file's content, and return the error message without the path."""

    def damage(name: str, change: Change) -> str:
        path = word_files_copy / f"{name}.yaml"
        content = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        change(content)
        written = yaml.dump(content, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)
        path.write_text(written, encoding="utf-8")
        with pytest.raises(SourceError) as caught:
            read_all()
        assert str(caught.value).startswith(f"{path}: ")
        return str(caught.value).removeprefix(f"{path}: ")

    return damage


def removed(*keys: Any) -> Change:
    def change(content: Any) -> None:
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return change


def replaced(value: object, *keys: Any) -> Change:
    def change(content: Any) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


def test_every_intact_word_file_is_read(word_files_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: set[str] = set()

    def record_and_read(self: Path, **options: Any) -> str:
        opened.add(self.relative_to(word_files_copy).as_posix())
        return self.read_bytes().decode()

    monkeypatch.setattr(Path, "read_text", record_and_read)
    read_all()
    assert opened == {path.relative_to(word_files_copy).as_posix() for path in word_files_copy.rglob("*.*")}


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("relations", ("ship", "beside")),
        ("multihop", ("chains", "birth_river", "hops")),
        ("zh/facts", ("work", "bell")),
        ("en/withheld", ("vague", "number")),
        ("en/story_openings", ("openings", "crates", "told")),
    ],
)
def test_a_missing_key_raises_an_error_that_names_it(
    error_of: Callable[..., str], name: str, keys: tuple[str, ...]
) -> None:
    assert error_of(name, removed(*keys)) == f"the key '{'.'.join(keys)}' is missing; add it"


@pytest.mark.parametrize(
    ("name", "keys", "hint"),
    [
        ("relations", ("ship", "facts", "length", "leats"), "did you mean 'least'?"),
        ("en/names", ("towns",), "did you mean 'town'?"),
        ("zh/yesno", ("meet",), "did you mean 'met'?"),
        ("zh/story_openings", ("openings", "crates", "wanted", "c"), "known keys are a, b"),
    ],
)
def test_an_unknown_key_raises_an_error_with_a_hint(
    error_of: Callable[..., str], name: str, keys: tuple[str, ...], hint: str
) -> None:
    sentence = error_of(name, replaced(["anything"], *keys))
    assert sentence.startswith(f"unknown key '{'.'.join(keys)}'; {hint}")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("en/things", replaced([], "wares"), "'wares' holds []; expected a list with at least one entry"),
        ("en/things", replaced(["salt", "salt"], "wares"), "'wares' holds 'salt' twice; remove one of them"),
        ("en/facts", replaced("a town", "town"), "'town' holds 'a town'; expected a mapping"),
        ("en/facts", replaced(["{s} is at {o"], "person", "born"), "expected matched braces"),
        ("en/grammar", replaced("no", "measure_words"), "'measure_words' holds 'no'; expected true or false"),
        ("zh/story_things", replaced(["果子"], "goods"), "expected a measure word, a bar and a thing"),
        ("relations", replaced("cities", "person", "facts", "born", "to"), "expected one of person, town,"),
        ("relations", replaced(0, "person", "facts", "wage", "least"), "expected numbers above 0"),
        ("relations", replaced({"to": "town"}, "work", "facts", "born"), "'work.facts.born' is taken by another kind"),
        ("multihop", replaced("home", "contrasts", "older", "number"), "expected a relation with a number"),
    ],
)
def test_an_invalid_value_raises_an_error_that_names_the_expectation(
    error_of: Callable[..., str], name: str, change: Change, message: str
) -> None:
    assert message in error_of(name, change)
