"""Greedy rollouts equal `generate` of transformers, turn by turn."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.world import World
from rc1_lib.training.rollout.roll_out import roll_out
from tests.training.rollout.standin import LIMITS, WIDE, StandInChat, row, sampling, starts


def by_generate(model: PreTrainedModel, chat: StandInChat, number: int) -> tuple[list[int], EpisodeStatus]:
    episode = Episode(World(row(number)), LIMITS, lambda text: len(chat.encode(text)))
    ids = chat.prompt_ids(episode.messages)
    while True:
        whole = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=120,
        )
        turn = whole[0, len(ids) :].tolist()
        answers = episode.say(chat.decode(turn), tokens=len(turn), cut=turn[-1] != chat.end_id)
        ids += turn
        if episode.status is not EpisodeStatus.RUNNING:
            return ids, episode.status
        ids += chat.observation_ids(answers)


def test_greedy_rollout_equals_generate_turn_by_turn(chat: StandInChat, memorized: PreTrainedModel) -> None:
    numbers = [0, 3, 7, 1]
    played = roll_out(memorized, chat, starts(chat, numbers), sampling(0.0), WIDE)
    assert [(list(each.ids), each.outcome.status) for each in played] == [
        by_generate(memorized, chat, number) for number in numbers
    ]
    assert max(each.outcome.turns for each in played) >= 2
