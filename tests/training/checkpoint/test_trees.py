"""Nested states survive the way through tensors and JSON."""

from __future__ import annotations

import math
import random

import numpy as np
import orjson
import pytest
import torch

from rc1_lib.training.checkpoint.rng import begin_step, restore_rng, rng_state
from rc1_lib.training.checkpoint.trees import flatten, unflatten
from tests.training.checkpoint.states import trained


def round_trip(tree):
    tensors, described = flatten(tree)
    copies = {name: tensor.clone() for name, tensor in tensors.items()}
    return unflatten(orjson.loads(orjson.dumps(described)), copies)


@pytest.mark.parametrize(
    "leaf",
    [None, True, 3, -(2**63), 2**127 + 1, 0.1 + 0.2, "x", (1, (2.5, None)), [], {}, (), {"a": {"b": [1]}}, {3: "c"}],
)
def test_plain_data_come_back_as_they_were(leaf: object) -> None:
    back = round_trip(leaf)
    assert back == leaf
    assert type(back) is type(leaf)


def test_numbers_that_json_lacks_come_back() -> None:
    assert math.isnan(round_trip(math.nan))
    assert round_trip([math.inf, -math.inf]) == [math.inf, -math.inf]


def test_a_key_that_looks_like_a_mark_is_only_a_key() -> None:
    assert round_trip({"%tuple": [1]}) == {"%tuple": [1]}
    assert round_trip({1: "int", "1": "text"}) == {1: "int", "1": "text"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool])
def test_tensors_keep_their_dtype_and_bits(dtype: torch.dtype) -> None:
    tensor = torch.tensor([0.0, 1.0, 1.0]).to(dtype)
    back = round_trip({"a": [tensor, {"b": tensor * 2}]})
    assert back["a"][0].dtype == dtype
    assert torch.equal(back["a"][0], tensor)
    assert torch.equal(back["a"][1]["b"], tensor * 2)


def test_two_tensors_whose_dotted_names_meet_stay_two() -> None:
    back = round_trip({"a.b": torch.tensor(1), "a": {"b": torch.tensor(2)}})
    assert (int(back["a.b"]), int(back["a"]["b"])) == (1, 2)


def test_what_would_need_a_pickle_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"lr_lambdas\.0 is a function"):
        flatten({"lr_lambdas": [lambda step: step]})


def test_an_optimizer_restored_takes_the_same_next_step() -> None:
    layer, optimizer, scheduler = trained()
    saved = round_trip({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()})
    assert saved["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]

    other, other_optimizer, other_scheduler = trained(seed=1)
    other.load_state_dict(layer.state_dict())
    other_optimizer.load_state_dict(saved["optimizer"])
    other_scheduler.load_state_dict(saved["scheduler"])
    for model, own, schedule in ((layer, optimizer, scheduler), (other, other_optimizer, other_scheduler)):
        own.zero_grad()
        model(torch.tensor([[1.0, -2.0, 0.5]])).pow(2).sum().backward()
        own.step()
        schedule.step()
    assert torch.equal(layer.weight, other.weight)
    assert torch.equal(layer.bias, other.bias)
    assert scheduler.get_last_lr() == other_scheduler.get_last_lr()


def test_every_generator_goes_on_where_it_was() -> None:
    own = {"torch": torch.Generator().manual_seed(3), "pcg": np.random.default_rng(4)}
    own["philox"] = np.random.Generator(np.random.Philox(5))

    def draw() -> list[float]:
        return [
            random.gauss(), np.random.randn(), float(torch.rand(1)), float(torch.rand(1, generator=own["torch"])),
            float(own["pcg"].normal()), float(own["philox"].random()),
        ]  # fmt: skip

    draw()  # so that the second number of a Gaussian pair is waiting
    begin_step(3, 7)
    saved = round_trip(rng_state(own, 3, 7))
    first = [draw(), draw()]
    assert draw() not in first
    restore_rng(saved, own)
    assert [draw(), draw()] == first
