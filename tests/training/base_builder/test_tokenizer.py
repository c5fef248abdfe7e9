"""The bundled base's tokenizer: lossless, and a name has the same tokens everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from rc1_lib.training.chat_format import ChatFormat, turn_text


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


def test_numbers_of_up_to_three_digits_are_one_token(form: ChatFormat) -> None:
    assert all(len(encoded(form, str(number))) == 1 for number in range(1000))
    assert encoded(form, "1234") == encoded(form, "123") + encoded(form, "4")
