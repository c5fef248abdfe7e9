"""Packed demonstrations: own tokens, exact tokens (with one right value), choosing tokens, and batches of all rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from rc1_lib.answer_rules.message import final_answer
from rc1_lib.extras.base_builder.packed import Packed, batches, pack
from rc1_lib.training.chat_format import ChatFormat


@pytest.fixture(scope="module")
def packed(form: ChatFormat, pool: list[dict[str, Any]]) -> Packed:
    return pack(pool, form, 2000)


def wanted_values(messages: list[Mapping[str, Any]]) -> list[str]:
    """Arguments of calls and answers, in order."""
    found = []
    for message in messages:
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            found += [value for call in calls for value in json.loads(call["function"]["arguments"]).values()]
            found += [] if calls else [final_answer(message["content"])]
    return found


def test_exact_tokens_are_those_of_arguments_and_answers(
    form: ChatFormat, pool: list[dict[str, Any]], packed: Packed
) -> None:
    for place, row in enumerate(pool):
        begin, end = packed.starts[place], packed.starts[place + 1]
        marked = zip(packed.ids[begin:end].tolist(), packed.exact[begin:end].tolist(), strict=True)
        spans = [[token for token, _ in part] for exact, part in groupby(marked, key=lambda pair: pair[1]) if exact]
        assert [form.decode(span).strip() for span in spans] == wanted_values(row["messages"])


def test_choosing_tokens_begin_a_turn_or_name_a_tool(
    form: ChatFormat, pool: list[dict[str, Any]], packed: Packed
) -> None:
    for place, row in enumerate(pool):
        begin, end = packed.starts[place], packed.starts[place + 1]
        ids, own = packed.ids[begin:end].tolist(), packed.own[begin:end].tolist()
        turns = [number for number in range(1, len(ids)) if own[number] and not own[number - 1]]
        chosen = [number for number in range(len(ids)) if packed.choice[begin + number]]
        spoken = [message for message in row["messages"] if message["role"] == "assistant"]
        named = [call["function"]["name"] for message in spoken for call in message.get("tool_calls") or []]
        others = [form.decode(ids[: number + 1]) for number in chosen if number not in turns]
        assert len(turns) == len(spoken) and set(turns) <= set(chosen)
        assert [text.rsplit('"name": "', 1)[1].split('"')[0] for text in others] == named


def test_values_invented_by_the_expert_can_be_excluded_from_training(
    form: ChatFormat, pool: list[dict[str, Any]], packed: Packed
) -> None:
    rows = [{**row, "made_up": place % 2 == 0} for place, row in enumerate(pool)]
    masked = pack(rows, form, 2000, made_up=False)
    assert np.array_equal(masked.ids, packed.ids), "excluded tokens must stay in the input"
    for place in range(len(rows)):
        part = slice(packed.starts[place], packed.starts[place + 1])
        exact = packed.exact[part] & (place % 2 == 1)
        assert np.array_equal(masked.exact[part], exact)
        assert np.array_equal(masked.own[part], packed.own[part] & ~(packed.exact[part] & ~exact))


def test_pass_has_every_row_once_in_batches_of_limited_size(packed: Packed) -> None:
    found = list(batches(packed, 1500, 10_000, np.random.default_rng(0)))
    assert sorted(row for batch in found for row in batch) == list(range(len(packed)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * int(packed.lengths[batch].max()) <= 1500
