"""Rows of input and output as demonstrations: reading, tokenizing and shuffling.

`configs/train_local.yaml` learns from such rows. The warm start shuffles the pool's dialogues in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
from transformers import PreTrainedTokenizerBase

from rc1_lib.environment.markers import THINK, THINK_END, defused
from rc1_lib.errors import RowError
from rc1_lib.training.chat_template import closing_of
from rc1_lib.training.updates.batch import Demonstration
from rc1_lib.workspace.input_files import open_text

_KEYS = {"input", "output", "meta"}


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of a JSONL file: `input`, `output` (strings) and `meta` (a mapping). Empty lines are skipped.

    Raises:
        RowError: naming file and line, what was found and what was expected.
    """
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield _row(line, f"{path} line {number}")
    except OSError as error:
        raise RowError(f"{path}: cannot be read ({error.strerror}); give a JSONL file") from None


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except ValueError as error:
        raise RowError(f"{where}: is not JSON ({error}); write one object per line") from None
    if not isinstance(row, dict) or row.keys() - _KEYS or not {"input", "output"} <= row.keys():
        found = ", ".join(sorted(row)) if isinstance(row, dict) else type(row).__name__
        raise RowError(f"{where}: found {found}, expected an object with only input, output and, optionally, meta")
    for key in ("input", "output"):
        if not isinstance(row[key], str) or not row[key].strip():
            raise RowError(f"{where}: '{key}' is {row[key]!r:.60}, expected a non-empty string")
    meta = row.get("meta", {})
    if not isinstance(meta, dict):
        raise RowError(f"{where}: 'meta' is {meta!r:.60}, expected an object")
    return {"input": row["input"], "output": row["output"], "meta": meta}


def encode_rows(
    rows: Iterable[dict[str, Any]], tokenizer: PreTrainedTokenizerBase, max_length: int, source: str
) -> list[Demonstration]:
    """Tokenize rows. Their outputs are learned. Rows longer than `max_length` are truncated at the end.

    All rows are checked before training, so a bad one is reported in the first minute. Special tokens that are spelled
    out in a row become plain text, with a space in them, as `environment.markers.defused` writes it: an `<|im_end|>` in
    an output must not teach a model to go on after its turn has ended. In an output, the marks of thoughts and tool
    calls stay as they are if the tokenizer does not treat them as special. If the prompt opens thoughts, an output
    closes them, with its own thoughts or without any.

    Args:
        rows: as `read_rows` yields them.
        tokenizer: its chat template makes the input a user message; without a template it becomes a line.
        max_length: most tokens of a row.
        source: name of the rows for messages.

    Raises:
        RowError: if there are no rows, or a prompt leaves no room for its output.
    """
    encoded = []
    marks = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    special = re.compile("|".join(f"{re.escape(mark[0])}(?={re.escape(mark[1:])})" for mark in marks) or r"(?!)")
    closing = closing_of(partial(_rendered, tokenizer)) if tokenizer.chat_template else ""
    for number, row in enumerate(rows, start=1):
        prompt = _prompt(tokenizer, special.sub(r"\g<0> ", defused(row["input"])))
        if len(prompt) >= max_length:
            raise RowError(
                f"{source} row {number}: the input has {len(prompt)} tokens and data.max_length is {max_length}, so "
                f"nothing of the output would be learned; raise it or shorten the row"
            )
        output = special.sub(r"\g<0> ", row["output"])
        if closing:
            output = output.lstrip().removeprefix(THINK).removeprefix("\n") if THINK_END in output else closing + output
        ids = (*prompt, *_plain(tokenizer, output), tokenizer.eos_token_id)[:max_length]
        own = [place >= max(len(prompt), 1) for place in range(len(ids))]
        encoded.append(Demonstration(str(number), ids, own))
    if not encoded:
        raise RowError(f"{source}: found no rows, expected at least one")
    return encoded


def _prompt(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    if not tokenizer.chat_template:
        return _plain(tokenizer, text + "\n")
    return _plain(tokenizer, _rendered(tokenizer, [{"role": "user", "content": text}], True))


def _rendered(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Mapping[str, Any]], opening: bool) -> str:
    rendered = tokenizer.apply_chat_template(cast(Any, messages), tokenize=False, add_generation_prompt=opening)
    assert isinstance(rendered, str)
    return rendered


def _plain(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


class ShuffledRows:
    """Every row once per epoch. Seed and epoch alone decide the order, so a position is two numbers."""

    def __init__(self, rows: Sequence[Any], rows_per_step: int, seed: int, name: str = "demonstrations") -> None:
        """Start at the first row of epoch 0; `name` is that of the rows in a batch."""
        assert rows and rows_per_step >= 1
        self._rows, self._take, self._seed, self._name = rows, rows_per_step, seed, name
        self._epoch = self._position = 0
        self._order = self._shuffled(0)

    def next(self) -> dict[str, Any]:
        """Return the next rows, and `step`. A step at the end of an epoch is filled up from the next one."""
        step = (self._epoch * len(self._rows) + self._position) // self._take
        chosen: list[int] = []
        while len(chosen) < self._take:
            if self._position == len(self._rows):
                self._epoch, self._position = self._epoch + 1, 0
                self._order = self._shuffled(self._epoch)
            part = self._order[self._position : self._position + self._take - len(chosen)]
            self._position += len(part)
            chosen += part
        return {self._name: [self._rows[index] for index in chosen], "step": step}

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, and the number of its rows used so far."""
        return {"epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a position."""
        self._epoch, self._position = state["epoch"], state["position"]
        self._order = self._shuffled(self._epoch)

    def _shuffled(self, epoch: int) -> list[int]:
        bits = np.random.Philox(key=np.array([self._seed, epoch], dtype=np.uint64))
        return [int(index) for index in np.random.Generator(bits).permutation(len(self._rows))]
