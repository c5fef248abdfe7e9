"""What counts as a duplicate: how many words may differ, whether numbers make a row different, in which scripts."""

from __future__ import annotations

from typing import Literal

import polars as pl
import pytest

from rc1_lib.config.thresholds import DuplicatesGate
from rc1_lib.gates.duplicates import duplicates_gate

SHORT = "The shop sells {} jars in all."
LONG = (
    "A shop by the harbour sells jars of honey to those who come by boat in the morning, and to those who come on foot "
    "in the evening when the light is low and the market is closed. In all it sells {} jars. How many does it keep for "
    "the next day, if everybody who asked for one has taken it home by then and nobody brings any of them back?"
)


def rows_of(texts: list[str]) -> pl.DataFrame:
    """Return rows with the columns that the gate reads, each with one user message."""
    messages = [[{"role": "user", "content": text, "tool_calls": None}] for text in texts]
    count = range(len(texts))
    return pl.DataFrame(
        {
            "id": [f"row-{number}" for number in count], "task": ["gsm8k"] * len(texts), "source": ["own"] * len(texts),
            "source_id": [str(number) for number in count], "messages": messages,
        }
    )  # fmt: skip


def judged(texts: list[str], numbers: Literal["differ", "alike"]) -> tuple[float, dict[str, object]]:
    limits = DuplicatesGate(max_dup_pct=2, numbers=numbers)
    result = duplicates_gate(rows_of(texts), limits, [])
    values = {check.name: check.value for check in result.checks}
    return float(str(values["duplicate rows, %"])), values


@pytest.mark.parametrize("template", [SHORT, LONG], ids=["short", "long"])
def test_the_setting_numbers_decides_whether_other_numbers_make_a_different_row(template: str) -> None:
    texts = [template.format(f"{number:,}.5") for number in range(1000, 1200)]
    for numbers, share in (("differ", 0.0), ("alike", 99.5)):
        found, values = judged(texts, numbers)  # type: ignore[arg-type]
        assert found == share
        assert values["rows that repeat an earlier one but for numbers"] == 199


def test_a_copy_with_the_same_numbers_is_a_duplicate_with_either_setting() -> None:
    texts = [LONG.format(12), LONG.format(12).replace("low", "dim")]
    assert judged(texts, "differ")[0] == judged(texts, "alike")[0] == 50


@pytest.mark.parametrize(
    "text",
    [
        "ร้านริมท่าเรือขายน้ำผึ้งให้คนที่มาทางเรือในตอนเช้าและคนที่เดินมาในตอนเย็นเมื่อแสงน้อยลง",
        "ហាងនៅជិតកំពង់ផែលក់ទឹកឃ្មុំដល់អ្នកដែលមកតាមទូកនៅពេលព្រឹកនិងអ្នកដែលដើរមកនៅពេលល្ងាច",
    ],
    ids=["Thai", "Khmer"],
)
def test_duplicates_in_scripts_without_spaces_are_found(text: str) -> None:
    """A regression test: such a sentence counted as one word, so one changed character made another row."""
    found, _ = judged([text, text[:-4] + text[0] + text[-3:], text[::-1]], "differ")
    assert found == pytest.approx(100 / 3)
