"""The word files of the embedded source: a fault raises an error that names file and key, and a change is detected."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rc1_lib.errors import SourceError
from rc1_lib.pool.derived import PARTS
from rc1_lib.pool.seed import build_seed
from rc1_lib.provenance import code
from rc1_lib.run import open_run
from rc1_lib.sources.embedded import generate, lexicon, multihop_kinds, relations, scene, story_words, word_files
from rc1_lib.sources.embedded.yesno import wordings as yesno_wordings
from rc1_lib.workspace.artifacts import PROJECT_ROOT, FileState

READERS = (
    relations.relations, lexicon.lexicon, scene._draws, multihop_kinds.kinds, multihop_kinds.wordings, yesno_wordings,
    story_words.story_words,
)  # fmt: skip
Change = Callable[[Any], object]


def clear_caches() -> None:
    for reader in READERS:
        reader.cache_clear()  # type: ignore[attr-defined]


def read_all() -> None:
    multihop_kinds.kinds()
    for lang in ("en", "zh"):
        story_words.story_words(lang)
        multihop_kinds.wordings(lang)
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
        ("relations", ("ship",)),
        ("relations", ("ship", "beside")),
        ("relations", ("ship", "facts", "length", "least")),
        ("multihop", ("contrasts",)),
        ("multihop", ("chains", "birth_river", "hops")),
        ("multihop", ("contrasts", "older", "asks")),
        ("en/names", ("town",)),
        ("zh/names", ("town", "tails")),
        ("en/things", ("wares",)),
        ("en/facts", ("work",)),
        ("zh/facts", ("work", "bell")),
        ("en/asides", ("people",)),
        ("zh/grammar", ("measure_words",)),
        ("en/withheld", ("vague", "number")),
        ("zh/withheld", ("wanted", "book")),
        ("en/multihop", ("chains", "birth_river")),
        ("zh/multihop", ("contrasts", "people_gap")),
        ("en/yesno", ("same_fair",)),
        ("en/story_things", ("boxes",)),
        ("en/story_openings", ("introductions",)),
        ("zh/story_openings", ("openings", "crates")),
        ("en/story_openings", ("openings", "crates", "told")),
        ("en/story_turns", ("gain",)),
        ("zh/story_turns", ("gain", "wanted")),
        ("zh/story_asks", ("each_child",)),
        ("en/story_vague", ("awkward",)),
    ],
)
def test_a_missing_key_raises_an_error_that_names_it(
    error_of: Callable[..., str], name: str, keys: tuple[str, ...]
) -> None:
    assert error_of(name, removed(*keys)) == f"the key '{'.'.join(keys)}' is missing; add it"


@pytest.mark.parametrize(
    ("name", "keys", "hint"),
    [
        ("relations", ("elf",), "known keys are person, town,"),
        ("relations", ("ship", "facts", "length", "leats"), "did you mean 'least'?"),
        ("multihop", ("chains", "birth_river", "besides"), "did you mean 'beside'?"),
        ("en/names", ("towns",), "did you mean 'town'?"),
        ("zh/things", ("ware",), "did you mean 'wares'?"),
        ("en/facts", ("ship", "born"), "known keys are captain, owner,"),
        ("zh/asides", ("befor",), "did you mean 'before'?"),
        ("en/grammar", ("between_sentence",), "did you mean 'between_sentences'?"),
        ("en/withheld", ("wanted", "number"), "known keys are person,"),
        ("en/multihop", ("chains", "older"), "known keys are birth_river,"),
        ("zh/yesno", ("meet",), "did you mean 'met'?"),
        ("en/story_things", ("box",), "did you mean 'boxes'?"),
        ("en/story_openings", ("openings", "debt"), "known keys are crates,"),
        ("zh/story_openings", ("openings", "crates", "wanted", "c"), "known keys are a, b"),
        ("en/story_turns", ("gains",), "did you mean 'gain'?"),
        ("en/story_asks", ("good",), "did you mean 'goods'?"),
        ("zh/story_vague", ("decoy",), "did you mean 'decoys'?"),
    ],
)
def test_an_unknown_key_raises_an_error_with_a_hint(
    error_of: Callable[..., str], name: str, keys: tuple[str, ...], hint: str
) -> None:
    sentence = error_of(name, replaced(["anything"], *keys))
    assert sentence.startswith(f"unknown key '{'.'.join(keys)}'; {hint}")


@pytest.mark.parametrize(
    ("name", "keys", "slot"),
    [
        ("en/facts", ("ship", "length", 0), "n"),
        ("zh/facts", ("person", "teacher", 2), "o"),
        ("en/multihop", ("chains", "birth_river", 1), "y"),
        ("zh/multihop", ("contrasts", "age_gap", 0), "b"),
        ("en/yesno", ("ride", 2), "z"),
        ("en/story_openings", ("introductions", 0), "w"),
        ("zh/story_turns", ("delivery", "told", 1), "n"),
        ("en/story_asks", ("coins", 0), "t"),
        ("zh/story_vague", ("decoys", 3), "v"),
    ],
)
@pytest.mark.parametrize("damage", ("missing", "twice", "unknown", "misspelt"))
def test_a_sentence_without_exactly_its_slots_raises_an_error(
    error_of: Callable[..., str], name: str, keys: tuple[str | int, ...], slot: str, damage: str
) -> None:
    def change(content: Any) -> None:
        for key in keys[:-1]:
            content = content[key]
        text = content[keys[-1]]
        content[keys[-1]] = {
            "missing": text.replace(f"{{{slot}}}", "it"),
            "twice": f"{text} {{{slot}}}",
            "unknown": f"{text} {{zz}}",
            "misspelt": text.replace(f"{{{slot}}}", f"{{{slot}!r}}"),
        }[damage]

    place = f"{'.'.join(str(key) for key in keys[:-1])}[{int(keys[-1]) + 1}]"
    sentence = error_of(name, change)
    assert re.match(rf"the key '{re.escape(place)}' holds .*; expected (text with|plain slots)", sentence)
    assert f"{{{slot}}}" in sentence or damage == "misspelt"


def test_an_opening_that_does_not_name_every_number_raises_an_error(error_of: Callable[..., str]) -> None:
    sentence = error_of("en/story_openings", replaced(["{p} of {t} has {b} {g}."], "openings", "crates", "told", 0))
    assert (
        "'openings.crates.told[1]' holds ['{p} of {t} has {b} {g}.']; expected sentences that also name {a}" in sentence
    )


def test_a_measure_word_in_a_language_without_measure_words_raises_an_error(error_of: Callable[..., str]) -> None:
    assert "no other slots except" in error_of("en/story_asks", replaced("Is {m} of {p} in {t}?", "goods", 0))


@pytest.mark.parametrize("value", [12, True, None, 1.5, ["a"], {"a": "b"}])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("en/things", ("wares", 3)),
        ("zh/names", ("river", "heads", 0)),
        ("en/facts", ("ship", "length", 0)),
        ("zh/story_openings", ("openings", "crates", "wanted", "a")),
        ("en/story_turns", ("gain", "told", 1)),
        ("en/asides", ("openers", 0)),
        ("zh/story_things", ("boxes", 0)),
    ],
)
def test_a_value_that_is_not_text_raises_an_error(
    error_of: Callable[..., str], name: str, keys: tuple[str | int, ...], value: object
) -> None:
    place = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
    expected = (
        f"the key '{place}' holds {value!r}; expected text (put it in quotes if YAML takes it for something else)"
    )
    assert error_of(name, replaced(value, *keys)) == expected


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("en/things", replaced([], "wares"), "'wares' holds []; expected a list with at least one entry"),
        ("en/things", replaced("salt", "wares"), "'wares' holds 'salt'; expected a list"),
        ("en/things", replaced(["salt", "salt"], "wares"), "'wares' holds 'salt' twice; remove one of them"),
        ("en/things", replaced(["salt", ""], "wares"), "'wares[2]' holds ''; expected text that is not empty"),
        ("en/facts", replaced("a town", "town"), "'town' holds 'a town'; expected a mapping"),
        ("en/facts", replaced(["{s} is at {o"], "person", "born"), "expected matched braces"),
        ("en/things", replaced("x", 12), "the key 12 is not text; put it in quotes"),
        ("en/grammar", replaced("no", "measure_words"), "'measure_words' holds 'no'; expected true or false"),
        ("zh/story_things", replaced(["果子"], "goods"), "expected a measure word, a bar and a thing"),
        ("en/story_things", replaced(["a|jar"], "goods"), "expected a thing without a bar"),
        ("en/story_things", replaced(["crate|"], "boxes"), "expected one word, or two words separated by a bar"),
        ("zh/asides", replaced(["老师"], "people"), "expected as many entries as there are writings (14)"),
        ("en/story_turns", replaced({}, "gain", "wanted"), "expected at least one of the numbers k"),
        ("relations", replaced("cities", "person", "facts", "born", "to"), "expected one of person, town,"),
        ("relations", replaced(0, "person", "facts", "wage", "least"), "expected numbers above 0"),
        ("relations", replaced("3", "person", "facts", "wage", "least"), "expected a whole number"),
        ("relations", replaced(["length"], "person", "beside"), "expected one of born, home,"),
        ("relations", replaced({"to": "town"}, "work", "facts", "born"), "'work.facts.born' is taken by another kind"),
        (
            "multihop",
            replaced(["born", "captain"], "chains", "birth_river", "hops"),
            "'chains.birth_river.hops[2]' holds",
        ),
        ("multihop", replaced(["home"], "chains", "birth_river", "beside"), "expected two relations"),
        (
            "multihop",
            replaced(["home", "yard"], "chains", "birth_river", "beside"),
            "birth_river.beside[2]' holds 'yard'",
        ),
        ("multihop", replaced("home", "contrasts", "older", "number"), "expected a relation with a number"),
        (
            "multihop",
            replaced("yard", "contrasts", "older_author", "hop"),
            "expected a relation that leads to a person",
        ),
        ("multihop", replaced("biggest", "contrasts", "older", "asks"), "expected one of least, most, difference"),
    ],
)
def test_an_invalid_value_raises_an_error_that_names_the_expectation(
    error_of: Callable[..., str], name: str, change: Change, message: str
) -> None:
    assert message in error_of(name, change)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"wares: [salt\n", " line 2 not YAML"),
        (b"wares: [salt]\nwares: [soap]\n", " line 2 not YAML (the key 'wares' is written twice)"),
        (b"wares: [\xff]\n", "byte 8 is not UTF-8"),
        (b"", "holds None; expected a mapping"),
        (None, "cannot be read (No such file or directory); put the file back"),
    ],
)
def test_an_unreadable_word_file_raises_an_error_that_names_it(
    word_files_copy: Path, content: bytes | None, message: str
) -> None:
    path = word_files_copy / "en/things.yaml"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(SourceError, match=r"things\.yaml: ") as caught:
        generate("gsm8k", 1, 1)
    assert message in str(caught.value)


def test_an_added_word_is_used(word_files_copy: Path) -> None:
    path = word_files_copy / "en/things.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("[potter,", "[lutenist, potter,"), encoding="utf-8")
    assert any("lutenist" in " ".join(question.support) for question in generate("gsm8k", 300, 1, 0.0))


def test_a_changed_word_makes_the_pool_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECT_ROOT / "rc1_lib", tmp_path / "project/rc1_lib", ignore=copied)
    monkeypatch.setattr(code, "CODE_ROOT", tmp_path / "project")
    code.code_sha256.cache_clear()
    small = ("pool.n=60", "pool.workers=1", "shadow.n=12", "ablation.takes=2")
    run = open_run(profile="local", workspace=tmp_path / "workspace", overrides=small)
    build_seed(run)
    states = [[artifact.state(run) for artifact in PARTS.values()]]
    library = code.code_sha256()
    path = tmp_path / "project/rc1_lib/sources/embedded/words/zh/things.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("陶匠", "陶工"), encoding="utf-8")
    code.code_sha256.cache_clear()
    states.append([artifact.state(run) for artifact in PARTS.values()])
    assert code.code_sha256() != library
    code.code_sha256.cache_clear()
    assert states == [[FileState.FRESH] * 3, [FileState.STALE] * 3]
