"""Sampling a token with one random number, against results by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rc1_lib.training.rollout.decoder import draw, uniforms

TENTHS = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()


@pytest.mark.parametrize(
    ("number", "token"), [(0.0, 0), (0.09, 0), (0.11, 1), (0.29, 1), (0.31, 2), (0.59, 2), (0.61, 3), (1 - 2**-53, 3)]
)
def test_drawn_token_is_the_first_whose_cumulative_probability_exceeds_the_number(number: float, token: int) -> None:
    tokens, logprobs = draw(TENTHS[None] + 5.0, np.array([number]), 1.0)
    assert tokens == [token]
    assert logprobs == pytest.approx([math.log((token + 1) / 10)], abs=1e-6)


def test_temperature_sharpens_the_distribution_and_its_log_probabilities() -> None:
    # Squared and normalized: 1, 4, 9 and 16 thirtieths.
    tokens, logprobs = draw(TENTHS[None].expand(2, 4), np.array([4.9 / 30, 13.9 / 30]), 0.5)
    assert tokens == [1, 2]
    assert logprobs == pytest.approx([math.log(4 / 30), math.log(9 / 30)], abs=1e-6)


@pytest.mark.parametrize("vocabulary", [65, 6144])
def test_blockwise_search_finds_the_token_of_one_cumulative_sum(vocabulary: int) -> None:
    logits = 4.0 * torch.randn(1, vocabulary, generator=torch.Generator().manual_seed(vocabulary))
    numbers = np.random.default_rng(1).random(4000)
    tokens, _ = draw(logits.expand(len(numbers), -1), numbers, 1.0)
    cumulated = torch.softmax(logits[0].double(), dim=-1).cumsum(0).numpy()
    expected = np.searchsorted(cumulated, numbers, side="right")
    # Exponentials are float32, so that a number very near a border may fall on the other side.
    clear = np.abs(cumulated[None] - numbers[:, None]).min(axis=1) > 1e-6
    assert clear.mean() > 0.95
    assert np.array_equal(np.array(tokens)[clear], expected[clear])


def test_random_stream_depends_only_on_seed_iteration_and_key() -> None:
    first = uniforms(1, 2, "row", 10)
    assert np.array_equal(uniforms(1, 2, "row", 4), first[:4])
    assert first.min() >= 0.0
    assert first.max() < 1.0
    for seed, iteration, key in ((2, 2, "row"), (1, 3, "row"), (1, 2, "wor"), (12, 2, "row"), (1, 22, "row")):
        assert not np.array_equal(uniforms(seed, iteration, key, 10), first)
