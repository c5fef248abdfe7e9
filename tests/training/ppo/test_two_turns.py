"""PPO solves a dialogue of two turns with a known optimum."""

from __future__ import annotations

import pytest
import torch

from rc1_lib.training.engines.torch_ppo import ppo_update
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.updates.batch import collate
from tests.training.ppo.toys import ToyPolicy, episode, settings

CLEAR_A, CLEAR_B, OPEN, ASK, HINT_A, HINT_B, NOTHING, SAY_A, SAY_B = range(9)
"""Two prompts with the answer, and one without it: there the user gives it on request."""


def reply(prompt: int, secret: int) -> int:
    return (HINT_A, HINT_B)[secret] if prompt == OPEN else NOTHING


def reward(prompt: int, secret: int, turns: list[int]) -> float:
    """1 for a right answer that is not a guess; minus 0.2 for a needless question."""
    asked = turns[0] == ASK
    right = turns[-1] == (SAY_A, SAY_B)[secret] and (asked or prompt != OPEN)
    return float(right) - 0.2 * (asked and prompt != OPEN)


def sample(policy: ToyPolicy, contexts: torch.Tensor, draw: torch.Generator) -> tuple[list[int], list[float]]:
    with torch.no_grad():
        log_p = torch.log_softmax(policy.logits(policy.hidden(contexts)[:, -1]), -1)
    tokens = torch.multinomial(log_p.exp(), 1, generator=draw)
    return tokens[:, 0].tolist(), log_p.gather(1, tokens)[:, 0].tolist()


def play_dialogues(policy: ToyPolicy, draw: torch.Generator, count: int) -> tuple[list[Trajectory], list[float]]:
    secrets = torch.randint(0, 2, (count,), generator=draw).tolist()
    prompts = [OPEN if number % 2 else (CLEAR_A, CLEAR_B)[secret] for number, secret in enumerate(secrets)]
    first, first_logprobs = sample(policy, torch.tensor(prompts)[:, None], draw)
    replies = [reply(prompt, secret) for prompt, secret in zip(prompts, secrets, strict=True)]
    second, second_logprobs = sample(policy, torch.tensor([*zip(prompts, first, replies, strict=True)]), draw)
    episodes, scores = [], []
    for row in range(count):
        parts = [(False, [prompts[row]]), (True, [first[row]])]
        logprobs, turns = [first_logprobs[row]], [first[row]]
        if first[row] == ASK:
            parts += [(False, [replies[row]]), (True, [second[row]])]
            logprobs, turns = [*logprobs, second_logprobs[row]], [*turns, second[row]]
        episodes.append(episode(f"{row:03}", parts, logprobs))
        scores.append(reward(prompts[row], secrets[row], turns))
    return episodes, scores


def greedy(policy: ToyPolicy, *context: int) -> int:
    return int(policy.logits(policy.hidden(torch.tensor([context]))[0, -1]).argmax())


@pytest.mark.long
def test_policy_learns_to_ask_only_if_information_is_missing() -> None:
    policy, draw = ToyPolicy(width=16, spread=0.1), torch.Generator().manual_seed(0)
    for parameter in policy.parameters():
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    chosen = settings(micro_tokens=1024, gamma=1.0, lam=0.95, minibatches=8, value_clip=10.0)
    for iteration in range(40):
        batch = collate(*play_dialogues(policy, draw, 128), pad_id=0, dtype=torch.float64)
        ppo_update(policy, batch, optimizer, chosen, kl_coef=0.0, iteration=iteration, generator=draw)
    assert [greedy(policy, prompt) for prompt in (CLEAR_A, CLEAR_B, OPEN)] == [SAY_A, SAY_B, ASK]
    assert [greedy(policy, OPEN, ASK, hint) for hint in (HINT_A, HINT_B)] == [SAY_A, SAY_B]
    _, scores = play_dialogues(policy, draw, 400)
    assert sum(scores) / len(scores) > 0.9
