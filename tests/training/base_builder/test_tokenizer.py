"""The bundled base's tokenizer: lossless, and a name has the same tokens everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from rc1_lib.extras.base_builder.tokenizer import MARKS, SPECIAL
from rc1_lib.training.chat_format import ChatFormat, turn_text
from tests.training.tiny_world import learned_tokenizer


def encoded(form: ChatFormat, text: str) -> list[int]:
    return list(form._tokenizer(text, add_special_tokens=False)["input_ids"])


def holds(ids: list[int], part: list[int]) -> bool:
    return any(ids[place : place + len(part)] == part for place in range(len(ids)))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pool_messages_survive_encoding_and_decoding(
    form: ChatFormat, mixed_pool: list[dict[str, Any]], language: str
) -> None:
    rows = [row for row in mixed_pool if row["lang"] == language]
    assert len(rows) >= 20
    for row in rows:
        for message in row["messages"]:
            text = turn_text(message) if message["role"] == "assistant" else message["content"]
            assert form.decode(encoded(form, text)) == text
            assert form.decode(encoded(form, "\n" + text)) == "\n" + text


@pytest.mark.parametrize(
    "text", ["naïve Zoë — 3.5 €", "名字 and 花野录，一", "tab\tnew\n\nline  two", "🙂 {}[]\\\"'", "a\n1 b"]
)
def test_other_texts_survive_encoding_and_decoding(form: ChatFormat, text: str) -> None:
    assert form.decode(encoded(form, text)) == text


def test_space_between_a_line_break_and_a_letter_is_lost(form: ChatFormat) -> None:
    assert form.decode(encoded(form, "a\n b")) == "a\nb"


def test_name_has_the_same_tokens_in_text_after_a_line_break_and_in_a_call(
    form: ChatFormat, mixed_pool: list[dict[str, Any]]
) -> None:
    names = {page["title"] for row in mixed_pool if row["lang"] == "en" for page in row["passages"]}
    names = {name for name in names if name.isalpha()}
    assert len(names) >= 20
    for name in names:
        inside = encoded(form, f"to {name}")[len(encoded(form, "to")) :]
        assert holds(encoded(form, f"\n{name} lies on a river."), inside)
        assert holds(encoded(form, f'{{"name": "wiki", "arguments": {{"title": "{name}"}}}}'), inside)
        assert holds(encoded(form, f"Answer: {name}"), inside)


def test_name_of_several_words_has_the_same_tokens_in_a_call(form: ChatFormat) -> None:
    inside = encoded(form, "of Old Varn")[len(encoded(form, "of")) :]
    assert holds(encoded(form, '{"name": "wiki", "arguments": {"title": "Old Varn"}}'), inside)


def test_numbers_of_up_to_three_digits_are_one_token(form: ChatFormat) -> None:
    assert all(len(encoded(form, str(number))) == 1 for number in range(1000))
    assert encoded(form, "1234") == encoded(form, "123") + encoded(form, "4")


@pytest.mark.parametrize(("tool", "argument"), [("wiki", "title"), ("calc", "expression"), ("ask_user", "question")])
def test_start_and_end_of_a_call_are_one_token_each(form: ChatFormat, tool: str, argument: str) -> None:
    head = f'{{"name": "{tool}", "arguments": {{"{argument}": "'
    tokens = encoded(form, f'{head}Varn"}}}}')
    assert len(encoded(form, head)) == 1 and tokens[0] == encoded(form, head)[0]
    assert form.decode(tokens[-1:]) == '"}}'


def test_every_special_token_alone_is_one_token(form: ChatFormat) -> None:
    assert [len(encoded(form, mark)) for mark in (*SPECIAL, *MARKS)] == [1] * 9


def test_same_texts_give_the_same_tokenizer(mixed_pool: list[dict[str, Any]], tmp_path: Path) -> None:
    one, other = (learned_tokenizer(mixed_pool[:10], 1500) for _ in range(2))
    for tokenizer, name in ((one, "one"), (other, "other")):
        tokenizer.save_pretrained(tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files and all(
        (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes() for name in files
    )


def test_saved_tokenizer_is_unchanged_when_loaded(
    form: ChatFormat, mixed_pool: list[dict[str, Any]], tmp_path: Path
) -> None:
    form._tokenizer.save_pretrained(tmp_path)
    back = ChatFormat(AutoTokenizer.from_pretrained(tmp_path))
    assert (back.end_id, back.pad_id) == (form.end_id, form.pad_id)
    for row in mixed_pool[:10]:
        assert back.dialogue_ids(row["messages"]) == form.dialogue_ids(row["messages"])
        ids = form.dialogue_ids(row["messages"])[0]
        assert back.decode(ids) == form.decode(ids)
