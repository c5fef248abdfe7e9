"""Measure how good a model is at each stage of a dialogue, on demonstrations that it has not seen.

Each value is the share of places where the model's most likely tokens, given everything before, are exactly the
expert's. It shows how a tiny model fails: it may choose the right tool and copy the wrong name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from models.build_embedded.corpus import Demonstration
from rc1_lib.answer_rules.message import final_answer
from rc1_lib.environment.markers import CALL, CALL_END
from rc1_lib.records import Message
from rc1_lib.training.chat_format import ChatFormat, turn_text


@torch.no_grad()
def skill_by_stage(model: Any, rows: Sequence[Demonstration], form: ChatFormat) -> dict[str, float]:
    """Return the accuracy by stage: `<tool> first`, `<tool> later`, `answer`, and `n ...` for the number of places.

    Args:
        model: a causal model of transformers.
        rows: demonstrations.
        form: chat format of the model's tokenizer.
    """
    hits: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        ids, own = form.dialogue_ids(row["messages"])
        likeliest = model(input_ids=torch.tensor([ids])).logits[0].argmax(-1)
        spans = _turns(own)
        messages = [message for message in row["messages"] if message["role"] == "assistant"]
        for number, (message, (first, last)) in enumerate(zip(messages, spans, strict=True)):
            _judge(message, ids, likeliest, first, last, form, "first" if number == 0 else "later", hits)
    shares = {name: sum(found) / len(found) for name, found in sorted(hits.items())}
    return {**shares, **{f"n {name}": float(len(found)) for name, found in sorted(hits.items())}}


def _turns(own: Sequence[bool]) -> list[tuple[int, int]]:
    edges = [i for i in range(len(own) + 1) if (i < len(own) and own[i]) != (i > 0 and own[i - 1])]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _judge(
    message: Message,
    ids: Sequence[int],
    likeliest: Tensor,
    first: int,
    last: int,
    form: ChatFormat,
    when: str,
    hits: dict[str, list[bool]],
) -> None:
    """Compare only the part that matters: everything from the first call on, or the answer after its mark."""
    text = turn_text(message)
    calls = message.get("tool_calls") or []
    matters = text[text.index(CALL) :] if calls else final_answer(text)
    tail = first
    # The shortest end of the turn whose text still contains the part that matters.
    for place in range(last - 1, first - 1, -1):
        if matters.strip() in form.decode(ids[place:last]):
            tail = place
            break
    wanted = torch.tensor(ids[tail:last])
    right = bool((likeliest[tail - 1 : last - 1] == wanted).all())
    if not calls:
        hits["answer"].append(right)
    elif len(calls) == 1:
        name = calls[0]["function"]["name"]
        hits[f"{name} {when}"].append(right)
    assert not calls or CALL_END in text
