"""Training the bundled base: it learns, follows the schedule and is reproducible."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from transformers import Qwen3ForCausalLM

from rc1_lib.extras.base_builder.learning import _share, train
from rc1_lib.extras.base_builder.packed import Packed, pack
from rc1_lib.extras.base_builder.recipe import Schedule
from rc1_lib.training.chat_format import ChatFormat
from tests.training.tiny_world import random_base

SCHEDULE = Schedule(
    corpus="pool", steps=30, batch_tokens=600, lr=1e-2, warm_up=3, decay_from=0.5, lr_end=1e-4, weight_decay=0.05,
    other_share=0.1, other_weight=0.3, exact_weight=4.0, short_until=0.4, short_tokens=260, copy_every=2, copy_length=4,
    embedding_lr=1e-2,
)  # fmt: skip


@pytest.fixture(scope="module")
def packed(form: ChatFormat, pool: list[dict[str, Any]]) -> Packed:
    return pack(pool, form, 320)


def learned(form: ChatFormat, packed: Packed, seed: int = 3) -> tuple[Qwen3ForCausalLM, list[dict[str, float]]]:
    torch.manual_seed(0)
    model = random_base(form._tokenizer)
    return model, train(model, packed, SCHEDULE, form.pad_id, seed)


def test_loss_falls_and_the_curve_ends_at_the_last_step(form: ChatFormat, packed: Packed) -> None:
    model = random_base(form._tokenizer)
    first = train(model, packed, SCHEDULE.model_copy(update={"steps": 1}), form.pad_id, 3)
    _, curve = learned(form, packed)
    assert curve[-1]["step"] == 30
    assert curve[-1]["own"] < first[-1]["own"] - 1.0


def test_seed_decides_every_bit(form: ChatFormat, packed: Packed) -> None:
    one, same, other = (learned(form, packed, seed)[0].state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert not all(torch.equal(value, other[name]) for name, value in one.items())


def test_learning_rate_warms_up_stays_and_decays() -> None:
    shares = [_share(step, SCHEDULE) for step in range(30)]
    assert shares[:3] == pytest.approx([1 / 3, 2 / 3, 1])
    assert set(shares[3:15]) == {1.0}
    # From half of the steps on, the rate falls linearly: it is full when 15 of 30 steps remain.
    assert shares[15:18] == pytest.approx([1, 14 / 15, 13 / 15])
    assert shares[29] == pytest.approx(1 / 15)
    assert min(shares) >= SCHEDULE.lr_end / SCHEDULE.lr
    assert all(late <= early for early, late in pairwise(shares[15:]))
