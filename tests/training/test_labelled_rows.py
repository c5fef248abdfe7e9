"""Rows from a file to padded batches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import AddedToken
from transformers import AutoTokenizer

from rc1_lib.errors import RowError, SourceError
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.labelled_rows import (
    IGNORED,
    Collator,
    EncodedRow,
    ShuffledRows,
    encode_rows,
    micro_batches,
    read_rows,
)
from rc1_lib.training.made_up_rows import ensure_rows
from tests.training.tiny import write_base

ROWS = [EncodedRow((1, 2, 3, 4), 2, {"n": 0}), EncodedRow((5, 6), 1, {"n": 1}), EncodedRow((7, 8, 9), 2, {"n": 2})]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory):
    return AutoTokenizer.from_pretrained(write_base(tmp_path_factory.mktemp("base")))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{", "line 2: is not JSON"),
        (b"[1]", "line 2: found list, expected an object"),
        (
            b'{"input": "a"}',
            "line 2: found input, expected an object with input, output and, where wanted, meta, nothing else",
        ),
        (b'{"input": "a", "output": "b", "score": 1}', "line 2: found input, output, score"),
        (b'{"input": " ", "output": "b"}', "line 2: 'input' is ' ', expected a text"),
        (b'{"input": "a", "output": 3}', "line 2: 'output' is 3, expected a text"),
        (b'{"input": "a", "output": "b", "meta": []}', r"line 2: 'meta' is \[\], expected an object"),
    ],
)
def test_a_bad_line_is_told_by_file_and_number(tmp_path: Path, line: bytes, sentence: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"input": "a", "output": "b", "meta": {"k": 1}}\n' + line + b"\n")
    rows = iter(read_rows(path))
    assert next(rows) == {"input": "a", "output": "b", "meta": {"k": 1}}
    with pytest.raises(RowError, match=rf"rows\.jsonl {sentence}"):
        next(rows)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(RowError, match="cannot be read"):
        list(read_rows(Path("nowhere.jsonl")))


def test_minimal_data_are_enough_valid_and_held_out(tmp_path: Path) -> None:
    train, held_out = tmp_path / "train_min.jsonl", tmp_path / "eval_min.jsonl"
    assert ensure_rows(train, evaluation=False)
    assert ensure_rows(held_out, evaluation=True)
    seen = [row["input"] for row in read_rows(train)]
    unseen = [row["input"] for row in read_rows(held_out)]
    assert len(seen) >= 100
    assert len(unseen) >= 30
    assert len(set(seen + unseen)) == len(seen) + len(unseen)
    assert {row["meta"]["kind"] for row in read_rows(held_out)} == {"sum", "place", "ask"}


def test_only_files_named_minimal_are_made_up_and_none_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"rows\.jsonl: there is no such file"):
        ensure_rows(tmp_path / "rows.jsonl", evaluation=False)
    mine = tmp_path / "train_min.jsonl"
    mine.write_text("mine")
    assert not ensure_rows(mine, evaluation=False)
    assert mine.read_text() == "mine"


def test_the_output_is_learned_and_the_prompt_is_not(tokenizer) -> None:
    [row] = encode_rows([{"input": "two?", "output": "three.", "meta": {"k": 1}}], tokenizer, 64, "rows")
    prompt, output = row.ids[: row.prompt_tokens], row.ids[row.prompt_tokens :]
    assert tokenizer.decode(prompt) == "<|im_start|>user\ntwo?<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(output) == "three.<|im_end|>"
    assert row.meta == {"k": 1}


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|im_start|>", "<|endoftext|>"])
def test_a_mark_that_a_row_spells_out_is_text_and_no_mark(tokenizer, mark: str) -> None:
    texts = {"input": f"two?{mark}user", "output": f"three.{mark}four.", "meta": {}}
    [row] = encode_rows([texts], tokenizer, 64, "rows")
    [clean] = encode_rows([{"input": "two?user", "output": "three.four.", "meta": {}}], tokenizer, 64, "rows")
    [number] = tokenizer.convert_tokens_to_ids([mark])
    assert row.ids.count(number) == clean.ids.count(number)
    assert tokenizer.decode(row.ids[row.prompt_tokens :]) == f"three.< {mark[1:]}four.<|im_end|>"
    # As in the prompts of episodes.
    messages = [{"role": "user", "content": texts["input"]}]
    assert list(row.ids[: row.prompt_tokens]) == ChatFormat(tokenizer).prompt_ids(messages)


def test_marks_of_thoughts_stay_marks_in_an_output(tmp_path: Path) -> None:
    thinking = AutoTokenizer.from_pretrained(write_base(tmp_path))
    thinking.add_tokens([AddedToken("<think>", special=False)])
    [row] = encode_rows([{"input": "a<think>", "output": "<think>b", "meta": {}}], thinking, 64, "rows")
    [number] = thinking.convert_tokens_to_ids(["<think>"])
    assert row.ids[row.prompt_tokens] == number
    assert number not in row.ids[: row.prompt_tokens]


def test_an_output_is_cut_and_a_prompt_without_room_is_refused(tokenizer) -> None:
    row = {"input": "two?", "output": "three.", "meta": {}}
    [whole] = encode_rows([row], tokenizer, 64, "rows")
    [cut] = encode_rows([row], tokenizer, len(whole.ids) - 2, "rows")
    assert cut.ids == whole.ids[:-2]
    with pytest.raises(RowError, match=rf"rows row 1: the input takes {whole.prompt_tokens} tokens"):
        encode_rows([row], tokenizer, whole.prompt_tokens, "rows")
    with pytest.raises(RowError, match="holds no row"):
        encode_rows([], tokenizer, 64, "rows")


def test_a_batch_is_padded_on_the_side_that_was_asked_for() -> None:
    right = Collator(0, "right")(ROWS[:2])
    assert right["input_ids"].tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    assert right["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert right["labels"].tolist() == [[IGNORED, IGNORED, 3, 4], [IGNORED, 6, IGNORED, IGNORED]]
    assert right["meta"] == [{"n": 0}, {"n": 1}]
    left = Collator(0, "left")(ROWS[:2])
    assert left["input_ids"].tolist() == [[1, 2, 3, 4], [0, 0, 5, 6]]
    assert left["labels"].tolist() == [[IGNORED, IGNORED, 3, 4], [IGNORED, IGNORED, IGNORED, 6]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_micro_batches_lose_only_columns_of_padding(side) -> None:
    parts = micro_batches(Collator(0, side)(ROWS), rows=2)
    assert [tuple(part["input_ids"].shape) for part in parts] == [(2, 4), (1, 3)]
    assert parts[1]["input_ids"].tolist() == [[7, 8, 9]]
    assert parts[1]["labels"].tolist() == [[IGNORED, IGNORED, 9]]
    assert all(isinstance(value, torch.Tensor) for part in parts for value in part.values())


def numbers(batches: ShuffledRows, steps: int) -> list[list[int]]:
    return [[row.meta["n"] for row in batches.next()["rows"]] for _ in range(steps)]


def shuffled(seed: int, rows_per_step: int = 2) -> ShuffledRows:
    rows = [EncodedRow((1,), 0, {"n": n}) for n in range(5)]
    return ShuffledRows(rows, lambda chosen: {"rows": chosen}, rows_per_step, seed)


def test_every_row_comes_once_an_epoch_in_another_order() -> None:
    given = [n for batch in numbers(shuffled(3), 5) for n in batch]
    assert sorted(given[:5]) == sorted(given[5:]) == [0, 1, 2, 3, 4]
    assert given[:5] != given[5:]
    assert given != [n for batch in numbers(shuffled(4), 5) for n in batch]


def test_a_step_may_take_more_rows_than_there_are() -> None:
    [batch] = numbers(shuffled(3, rows_per_step=12), 1)
    assert sorted(batch[:5]) == sorted(batch[5:10]) == [0, 1, 2, 3, 4]
    assert len(batch) == 12


@pytest.mark.parametrize("done", range(6))
def test_from_a_position_the_same_batches_follow(done: int) -> None:
    first = shuffled(3)
    numbers(first, done)
    second = shuffled(3)
    second.load_state_dict(first.state_dict())
    assert numbers(second, 5) == numbers(first, 5)
