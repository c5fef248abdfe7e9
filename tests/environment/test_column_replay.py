"""What columns call true the player calls true, whatever was done to the row; and of sound rows they doubt none."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from rc1_lib.environment.column_replay import confirmed_rows, sums_of, values_of
from rc1_lib.environment.replay import inconsistencies, sums
from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.numbers.calculator import CalculatorError, calculate
from rc1_lib.pool.as_asked import Questions, are_as_asked, as_asked, known_questions
from rc1_lib.records import Row
from rc1_lib.rows.frame import read_rows
from tests.gates.damages import UNTRUE, Damage, Rows

_ODD = (
    "", " ", "\t", "\x1f", "\u0085", "\u3000", "_", "0", "Answer: 7", " Answer: yes", "答案：", '"', "\\", "\\u0041",
    "\x00", "<think>", "</think>", "<|im_end|>", "<|²|>", "<tool_call>", " = ", ", 2+2 = 4", "，3/2 = 1.5", "yes",
    "\n", "\u2028", "ANSWER: 7", "**Answer:** 7", "Answer：7", "#### 7", "\\boxed{7}", "<THINK>", "答案: 7", "Answer",
)  # fmt: skip


@pytest.fixture(scope="module")
def questions(evidence: Evidence) -> Questions:
    return known_questions(evidence.run.config, evidence.run.workspace)


@pytest.fixture(scope="module")
def lines(evidence: Evidence) -> list[bytes]:
    return evidence.path("pool").read_bytes().splitlines()[:100]


@pytest.fixture(scope="module")
def shadow(evidence: Evidence) -> Rows:
    return [orjson.loads(line) for line in evidence.path("shadow").read_bytes().splitlines()]


def found_nothing(find: Callable[..., Iterator[object]], row: Row, *beside: object) -> bool:
    try:
        return not list(find(row, *beside))
    except (TypeError, RowError, AttributeError, IndexError, KeyError):
        return False  # what no gate is given: the rows' check has refused it


def check_sure(frame: pl.DataFrame, questions: Questions, known: Sequence[bool] = ()) -> tuple[int, int]:
    """How many rows are called true by either function; each of them really is, or is `known` to be."""
    by_world, by_source = confirmed_rows(frame), are_as_asked(frame, questions)
    rows = zip(frame.iter_rows(named=True), by_world, by_source, known or [False] * frame.height, strict=True)
    for row, plays, asked, sure in rows:
        if sure:
            continue
        assert not plays or found_nothing(inconsistencies, row), orjson.dumps(row).decode()
        question = questions.get((row["source"], row["source_id"]))
        assert not asked or (question and found_nothing(as_asked, row, question)), row
    return int(by_world.sum()), int(by_source.sum())


def test_of_what_the_builder_writes_nothing_is_doubted(evidence: Evidence, questions: Questions) -> None:
    for name in ("pool", "shadow", "takes"):
        rows = evidence.rows(name)
        assert check_sure(rows, questions) == (rows.height, rows.height)


@pytest.mark.parametrize("damage", UNTRUE, ids=lambda damage: damage.name)
def test_no_damage_is_called_true(
    damage: Damage, lines: list[bytes], shadow: Rows, questions: Questions, tmp_path: Path
) -> None:
    """Asked about what was damaged alone: a row that stands as the builder wrote it is true."""
    rows: Rows = [orjson.loads(line) for line in lines]
    damage.do(rows, shadow)
    now, written = [orjson.dumps(row) for row in rows], {*lines}
    (tmp_path / "rows.jsonl").write_bytes(b"".join(line + b"\n" for line in now))
    untouched = [line in written for line in now]
    assert any(untouched) and not all(untouched)
    check_sure(read_rows(tmp_path / "rows.jsonl"), questions, untouched)


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _leaves(inner, (*at, key))


def _edited(row: dict[str, Any], rng: random.Random, other: dict[str, Any]) -> None:
    """One place of the row, changed in one of many ways."""
    *way, last = rng.choice([at for at in _leaves(row) if at])
    holder: Any = row
    for key in way:
        holder = holder[key]
    value = holder[last]
    if isinstance(value, bool) or value is None:
        holder[last] = not value
    elif isinstance(value, int):
        holder[last] = value + rng.choice([-1, 1])
    elif isinstance(value, str):
        cut = rng.randint(0, len(value))
        holder[last] = rng.choice([value[:cut], value[:cut] + rng.choice(_ODD) + value[cut:], rng.choice(_ODD), None])
        holder[last] = holder[last] if rng.random() < 0.9 else str(other.get(last, "7"))
    elif isinstance(value, list) and value:
        place = rng.randrange(len(value))
        value.insert(rng.randint(0, len(value)), value.pop(place)) if rng.random() < 0.5 else value.pop(place)
    else:
        holder[last] = None


def check_edits(lines: list[bytes], questions: Questions, path: Path, seeds: range) -> None:
    sure = 0
    for seed in seeds:
        rng = random.Random(seed)
        rows = []
        for line in lines:
            row, other = orjson.loads(line), orjson.loads(rng.choice(lines))
            _edited(row, rng, other)
            path.write_bytes(orjson.dumps(row) + b"\n")
            try:
                read_rows(path)
            except RowError:
                continue
            rows.append(orjson.dumps(row))
        path.write_bytes(b"\n".join(rows))
        by_world, by_source = check_sure(read_rows(path), questions)
        assert by_world < len(rows) > by_source
        sure += by_world
    assert sure > 0


def test_whatever_place_of_a_row_is_edited_only_what_is_true_is_called_so(
    lines: list[bytes], questions: Questions, tmp_path: Path
) -> None:
    check_edits(lines, questions, tmp_path / "rows.jsonl", range(2))


@pytest.mark.long
def test_thousands_of_edits(lines: list[bytes], questions: Questions, tmp_path: Path) -> None:
    check_edits(lines, questions, tmp_path / "rows.jsonl", range(100, 160))


def test_sums_in_columns_are_those_of_the_player(evidence: Evidence) -> None:
    rows = evidence.rows("pool")
    in_columns: dict[int, list[tuple[str, str]]] = {}
    for row, expression, result in sums_of(rows).iter_rows():
        in_columns.setdefault(row, []).append((expression, result))
    one_by_one = {place: found for place, row in enumerate(rows.iter_rows(named=True)) if (found := sums(row))}
    assert in_columns == one_by_one
    assert len(one_by_one) > 20


def test_values_in_columns_are_the_calculators() -> None:
    rng = random.Random(5)
    signs, starts = ["+", "-", "*", "/", "<", ">", "=", "//", "%", "x"], ["", "0", "-", " "]
    texts = ["", "999999999*999999999", "1000000000*1", "7/0", "0/7", "3/8", "1+2+3"]
    for _ in range(3000):
        left, right = (f"{rng.choice(starts)}{rng.randint(0, 40)}" for _ in range(2))
        texts.append(f"{left}{rng.choice(signs)}{right}")
    expected = []
    for text in texts:
        try:
            expected.append(calculate(text))
        except CalculatorError:
            expected.append(None)
    assert values_of(pl.Series(texts)).to_list() == expected
    assert values_of(pl.Series([], dtype=pl.String)).to_list() == []
