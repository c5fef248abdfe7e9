"""Loading template packs: what a pack contains, and the error for each mistake in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import TemplateError
from rc1_lib.pool.diversity_report import pack_texts
from rc1_lib.pool.templates import Pack, load_pack
from rc1_lib.task_specs import template_kinds


def template(name: str = "one", **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": name,
        "role": "tutor",
        "style": "terse",
        "system": "You count apples well.",
        "user": "Please: {question}",
        "quote": "Notes say: {evidence}",
        "lookup": "Read {titles}.",
        "steps": {"wiki": ["", "Open {title} now."], "calc": ["", "Do {expression}."]},
        "final": ["Done.", "See {reason}."],
        "ask": ["Which is {wanted}?", "Say {wanted}."],
        "reply": ["It is {value}.", "{value}!"],
        "nothing_missing": ["All there.", "Go on."],
    }
    return body | changes


def write(folder: Path, *templates: Any, name: str = "maths.en", **header: Any) -> Path:
    kind, lang = name.split(".")[:2]
    body = {"pack": "p", "kind": kind, "lang": lang, "templates": list(templates)} | header
    file = folder / f"{name}.json"
    file.write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")
    return file


def fault(folder: Path) -> str:
    with pytest.raises(TemplateError) as caught:
        load_pack(folder)
    return str(caught.value)


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    write(tmp_path, template("b", role="guide"), template("a"))
    write(tmp_path, template("c", style="formal"), name="multihop.zh")
    return load_pack(tmp_path)


def test_templates_are_selected_by_kind_and_language_in_id_order(pack: Pack) -> None:
    assert [t.id for t in pack.select("maths", "en")] == ["a", "b"]
    assert [t.id for t in pack.select("multihop", "zh")] == ["c"]
    assert (pack.name, pack.roles, pack.styles) == ("p", ("guide", "tutor"), ("formal", "terse"))


def test_pack_texts_contain_no_slots_and_can_be_of_one_language(pack: Pack) -> None:
    texts = pack_texts(pack, "zh")
    assert texts[0] == "You count apples well."
    assert not any("{" in text for text in texts)
    assert len(pack_texts(pack)) == 3 * len(texts)


def test_fingerprint_ignores_order_and_detects_one_changed_character(tmp_path: Path) -> None:
    def fingerprint(name: str, *templates: dict[str, Any]) -> str:
        folder = tmp_path / name
        folder.mkdir()
        write(folder, *templates)
        return load_pack(folder).sha256

    first = fingerprint("first", template("a"), template("b"))
    reordered = fingerprint("reordered", template("b"), template("a"))
    changed = fingerprint("changed", template("a", system="You count apples, well."), template("b"))
    assert first == reordered
    assert first != changed


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"user": "Hello."}, "key 'user' holds \"Hello.\"; expected {question} "),
        ({"system": "You {question}."}, "key 'system' holds \"You {question}.\"; expected "),
        ({"ask": ["Say {wanted}.", "What?"]}, "key 'ask.1' holds \"What?\"; expected {wanted} "),
        ({"final": ["Answer: {reason}", "Done."]}, "expected no 'Answer:' or '答案：'"),
        ({"final": ["The ANSWER**: see below. {reason}", "Done."]}, "expected no 'Answer:' or '答案：'"),
        ({"final": ["Done."]}, "key 'final' holds [\"Done.\"]; expected"),
        ({"steps": {"wiki": ["", ""], "calk": ["", ""]}}, "key 'steps.calc' is missing"),
        ({"sytem": "x"}, "unknown key 'sytem' with \"x\"; did you mean 'system'?"),
        ({"role": 7}, "key 'role' holds 7; expected "),
        ({"user": "{question!r}"}, ": a plain slot {question} "),
    ],
)
def test_malformed_template_is_rejected_with_key_value_and_expectation(
    tmp_path: Path, changes: dict[str, Any], error: str
) -> None:
    file = write(tmp_path, template("fine"), template("wrong", **changes))
    message = fault(tmp_path)
    assert message.startswith(f'{file}: template "wrong": ')
    assert error in message


def test_unknown_kind_and_language_list_the_known_ones(tmp_path: Path) -> None:
    file = write(tmp_path, template(), kind="math")
    known = ", ".join(f"'{kind}'" for kind in template_kinds()[:-1])
    assert fault(tmp_path) == f"{file}: key 'kind' holds \"math\"; expected {known} or 'clarification'"
    write(tmp_path, template(), lang="fr")
    assert "key 'lang' holds \"fr\"; expected 'en' or 'zh'" in fault(tmp_path)


def test_duplicate_id_is_rejected_with_both_files(tmp_path: Path) -> None:
    first = write(tmp_path, template("twin"), name="maths.en")
    second = write(tmp_path, template("twin"), name="multihop.en")
    assert fault(tmp_path).startswith(f"{second}: template \"twin\": key 'id' is taken by a template of {first}")


def test_folder_without_templates_is_rejected(tmp_path: Path) -> None:
    assert "no template files (*.json)" in fault(tmp_path)
    assert "no template files (*.json)" in fault(tmp_path / "absent")


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "maths.en.json").write_text('{"pack": "p",\n "kind" "maths"}', encoding="utf-8")
    assert "maths.en.json: line 2: not JSON" in fault(tmp_path)
    (tmp_path / "maths.en.json").write_text('{"pack": ' + "1" * 5000 + "}", encoding="utf-8")
    assert "maths.en.json: not a template file" in fault(tmp_path)
