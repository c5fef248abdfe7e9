"""Rows of a file as demonstrations, and their order."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from rc1_lib.errors import RowError
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.labelled_rows import ShuffledRows, encode_rows, read_rows
from rc1_lib.training.made_up_rows import ensure_rows
from rc1_lib.training.updates.batch import Demonstration
from tests.training.chat_templates import FAMILIES, tokenizer_of
from tests.training.tiny import write_base


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory):
    return AutoTokenizer.from_pretrained(write_base(tmp_path_factory.mktemp("base")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 2: .*JSON"),
        (b'{"input": "a", "output": "b", "score": 1}', "line 2: .* input, output, score"),
        (b'{"input": " ", "output": "b"}', "line 2: 'input' .*' ', .*string"),
        (b'{"input": "a", "output": "b", "meta": []}', r"line 2: 'meta' .*\[\], .*object"),
    ],
)
def test_bad_line_is_rejected_with_file_and_line_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"input": "a", "output": "b", "meta": {"k": 1}}\n' + line + b"\n")
    rows = iter(read_rows(path))
    assert next(rows) == {"input": "a", "output": "b", "meta": {"k": 1}}
    with pytest.raises(RowError, match=rf"rows\.jsonl {message}"):
        next(rows)


def test_synthetic_rows_are_valid_and_evaluation_rows_are_held_out(tmp_path: Path) -> None:
    train, held_out = tmp_path / "train_min.jsonl", tmp_path / "eval_min.jsonl"
    assert ensure_rows(train, evaluation=False)
    assert ensure_rows(held_out, evaluation=True)
    seen = [row["input"] for row in read_rows(train)]
    unseen = [row["input"] for row in read_rows(held_out)]
    assert len(seen) >= 100
    assert len(unseen) >= 30
    assert len(set(seen + unseen)) == len(seen) + len(unseen)
    assert {row["meta"]["kind"] for row in read_rows(held_out)} == {"sum", "place", "ask"}


def prompt_of(row: Demonstration) -> list[int]:
    return list(row.ids[: list(row.action_mask).index(True)])


def test_mask_covers_the_output_and_not_the_prompt(tokenizer) -> None:
    [row] = encode_rows([{"input": "two?", "output": "three.", "meta": {"k": 1}}], tokenizer, 64, "rows")
    assert tokenizer.decode(prompt_of(row)) == "<|im_start|>user\ntwo?<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(row.ids[len(prompt_of(row)) :]) == "three.<|im_end|>"
    assert all(row.action_mask[len(prompt_of(row)) :])


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|im_start|>"])
def test_special_token_spelled_in_a_row_is_plain_text(tokenizer, mark: str) -> None:
    texts = {"input": f"two?{mark}user", "output": f"three.{mark}four.", "meta": {}}
    [row] = encode_rows([texts], tokenizer, 64, "rows")
    [clean] = encode_rows([{"input": "two?user", "output": "three.four.", "meta": {}}], tokenizer, 64, "rows")
    [number] = tokenizer.convert_tokens_to_ids([mark])
    assert row.ids.count(number) == clean.ids.count(number)
    assert tokenizer.decode(row.ids[len(prompt_of(row)) :]) == f"three.< {mark[1:]}four.<|im_end|>"
    # The same as in the prompts of episodes.
    messages = [{"role": "user", "content": texts["input"]}]
    assert prompt_of(row) == ChatFormat(tokenizer).prompt_ids(messages)


def test_output_closes_the_thoughts_that_the_prompt_opens() -> None:
    thinking = tokenizer_of(FAMILIES["Qwen3-Thinking"])
    texts = ("three.", "<think>\none more</think>three.")
    plain, thought = encode_rows(
        [{"input": "two?", "output": text, "meta": {}} for text in texts], thinking, 64, "rows"
    )
    assert list(plain.ids[len(prompt_of(plain)) :]) == ChatFormat(thinking).turn_ids(
        {"role": "assistant", "content": "three."}
    )
    assert thinking.decode(thought.ids).endswith("<think>\none more</think>three.<|im_end|>")


def test_long_output_is_cut_and_a_prompt_without_room_is_rejected(tokenizer) -> None:
    row = {"input": "two?", "output": "three.", "meta": {}}
    [whole] = encode_rows([row], tokenizer, 64, "rows")
    [cut] = encode_rows([row], tokenizer, len(whole.ids) - 2, "rows")
    assert cut.ids == whole.ids[:-2]
    with pytest.raises(RowError, match=rf"^rows row 1: .* {len(prompt_of(whole))} .*data\.max_length"):
        encode_rows([row], tokenizer, len(prompt_of(whole)), "rows")
    with pytest.raises(RowError, match=r"^rows: .*row"):
        encode_rows([], tokenizer, 64, "rows")


def numbers(batches: ShuffledRows, steps: int) -> list[list[int]]:
    return [[int(row.row_id) for row in batches.next()["demonstrations"]] for _ in range(steps)]


def shuffled(seed: int, rows_per_step: int = 2) -> ShuffledRows:
    return ShuffledRows([Demonstration(str(n), (1, 2), (False, True)) for n in range(5)], rows_per_step, seed)


def test_every_epoch_has_all_rows_in_another_order() -> None:
    given = [n for batch in numbers(shuffled(3), 5) for n in batch]
    assert sorted(given[:5]) == sorted(given[5:]) == [0, 1, 2, 3, 4]
    assert given[:5] != given[5:]
    assert given != [n for batch in numbers(shuffled(4), 5) for n in batch]
