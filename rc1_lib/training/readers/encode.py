"""Rows as tokens: the input as a prompt, the output as what is to be learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from rc1_lib.errors import RowError


@dataclass(frozen=True, slots=True)
class EncodedRow:
    """One row as tokens.

    Attributes:
        ids: prompt and output, the end-of-text token included unless it was cut off.
        prompt_tokens: how many of them are the prompt, which is not learned.
        meta: as it stands in the row.
    """

    ids: tuple[int, ...]
    prompt_tokens: int
    meta: dict[str, Any]


def encode_rows(
    rows: Iterable[dict[str, Any]], tokenizer: PreTrainedTokenizerBase, max_length: int, source: str
) -> list[EncodedRow]:
    """Tokenise rows; an output that reaches beyond `max_length` is cut at its end.

    All rows are looked at before anything is learned, so that a bad one is told in the first minute.

    Args:
        rows: as `JSONLReader` gives them.
        tokenizer: with its chat template the input becomes a user's message; without one it stands on a line.
        max_length: most tokens of a row.
        source: what to call the rows in an error.

    Raises:
        RowError: when there is no row, or a prompt leaves no room for its output.
    """
    encoded = []
    for number, row in enumerate(rows, start=1):
        prompt = _prompt(tokenizer, row["input"])
        if len(prompt) >= max_length:
            raise RowError(
                f"{source} row {number}: the input takes {len(prompt)} tokens and data.max_length is {max_length}, "
                f"so nothing of the output would be learned; raise it or shorten the row"
            )
        output = _plain(tokenizer, row["output"])
        ids = (*prompt, *output, tokenizer.eos_token_id)[:max_length]
        encoded.append(EncodedRow(ids, len(prompt), row["meta"]))
    if not encoded:
        raise RowError(f"{source}: holds no row; write at least one")
    return encoded


def _prompt(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    if not tokenizer.chat_template:
        return _plain(tokenizer, text + "\n")
    rendered = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )
    assert isinstance(rendered, str)
    return _plain(tokenizer, rendered)


def _plain(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
