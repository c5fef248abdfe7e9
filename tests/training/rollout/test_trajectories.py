"""The parts of a trajectory: own tokens, ends of turns, and how episodes end."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM, PreTrainedModel

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.rollout.decoder import RolloutError
from rc1_lib.training.rollout.roll_out import roll_out
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.rollout.standin import (
    LIMITS,
    WIDE,
    StandInChat,
    random_model,
    sampling,
    starts,
)


def greedy(model: PreTrainedModel, chat: StandInChat, **limits: int) -> Trajectory:
    return roll_out(model, chat, starts(chat, [0], replace(LIMITS, **limits)), sampling(0.0), WIDE)[0]


def test_tokens_and_masks_are_those_of_the_dialogue(chat: StandInChat, memorized: PreTrainedModel) -> None:
    for each in roll_out(memorized, chat, starts(chat, [0, 3, 5] * 4), sampling(), WIDE):
        # A turn starts at the first own token after others.
        turns = [
            place
            for place in range(1, len(each.action_mask))
            if each.action_mask[place] and not each.action_mask[place - 1]
        ]
        assert turns[0] == each.prompt_tokens
        assert len(turns) == len(each.turn_ends) == each.outcome.turns
        assert each.action_count == sum(end + 1 - start for start, end in zip(turns, each.turn_ends, strict=True))
        assert each.turn_ends[-1] == len(each.ids) - 1, "tokens after the last turn are kept"
        assert each.ids[each.prompt_tokens - 1 :: -1] == tuple(chat.prompt_ids(each.messages[:1]))[::-1]
        for end in each.turn_ends[:-1]:
            assert each.ids[end] == chat.end_id


def test_observations_are_inserted_verbatim(chat: StandInChat, memorized: PreTrainedModel) -> None:
    each = greedy(memorized, chat)
    inserted = [token for token, own in zip(each.ids, each.action_mask, strict=True) if not own][each.prompt_tokens :]
    assert inserted == chat.observation_ids(each.messages[2:3])


def test_episode_is_cut_at_its_token_limit(chat: StandInChat, memorized: PreTrainedModel) -> None:
    first = greedy(memorized, chat)
    used = first.turn_ends[0] + 1 - first.prompt_tokens
    each = greedy(memorized, chat, tokens=used - 1)
    assert (each.outcome.status, each.action_count) == (EpisodeStatus.MAX_TOKENS, used - 1)


@pytest.mark.parametrize("room", [0, 1, 5])
def test_episode_is_cut_at_the_end_of_the_context(chat: StandInChat, memorized: PreTrainedModel, room: int) -> None:
    whole = greedy(memorized, chat)
    second = next(place for place in range(whole.turn_ends[0] + 1, len(whole.ids)) if whole.action_mask[place])
    model = copy.deepcopy(memorized)
    model.config.max_position_embeddings = second + room
    each = greedy(model, chat)
    assert each.outcome.status is EpisodeStatus.MAX_TOKENS
    assert not each.outcome.right
    # Without space for a token of the next turn, the observation is not read.
    assert each.ids == whole.ids[: second + room if room else whole.turn_ends[0] + 1]
    assert each.outcome.turns == (2 if room else 1)


def test_prompt_that_fills_the_context_is_rejected(chat: StandInChat) -> None:
    model = random_model(chat, context=8)
    with pytest.raises(RolloutError, match=r"'row-4' .*\d+ tokens, .* 1 to 7 "):
        roll_out(model, chat, starts(chat, [4]), sampling(), WIDE)


def test_diverged_model_is_rejected(chat: StandInChat) -> None:
    model = random_model(chat)
    model.model.norm.weight.data[0] = torch.nan
    with pytest.raises(DivergedError, match=r"\blogits\b"):
        roll_out(model, chat, starts(chat, [0]), sampling(), WIDE)


@pytest.mark.parametrize("config", [{}, {"max_position_embeddings": 256}])
def test_model_without_a_key_value_cache_is_rejected(chat: StandInChat, config: dict[str, Any]) -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=chat.size, hidden_size=16, num_hidden_layers=1, state_size=4))
    model.config.update(config)
    with pytest.raises(RolloutError, match="'mamba'"):
        roll_out(model, chat, starts(chat, [0]), sampling(), WIDE)
