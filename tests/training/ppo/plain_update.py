"""A slow PPO as reference for the real one: one token at a time, without padding and mask."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rc1_lib.training.engines.torch_ppo import PPOSettings
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.ppo.toys import ToyPolicy


def steps_of(episode: Trajectory) -> list[int]:
    return [at for at, mine in enumerate(episode.action_mask) if mine]


def predict(policy: ToyPolicy, episode: Trajectory, at: int, temperature: float) -> tuple[Tensor, Tensor]:
    """The token distribution at a position and the value of the state before it, from the tokens before it."""
    state = policy.hidden(torch.tensor([episode.ids[:at]]))[0, -1]
    weights = (policy.logits(state) / temperature).exp()
    return weights / weights.sum(), policy.value_head(state)


def advantages_and_returns(
    policy: ToyPolicy, episodes: Sequence[Trajectory], scores: Sequence[float], settings: PPOSettings, kl_coef: float
) -> tuple[list[list[float]], list[list[float]]]:
    """Advantages and returns of every own token of every episode."""
    advantages, returns = [], []
    for episode, score in zip(episodes, scores, strict=True):
        steps = steps_of(episode)
        v = [float(predict(policy, episode, at, settings.temperature)[1]) for at in steps]
        with policy.reference():
            reference = [
                math.log(float(predict(policy, episode, at, settings.temperature)[0][episode.ids[at]])) for at in steps
            ]
        rewards = [-kl_coef * (episode.logprobs[at] - q) for at, q in zip(steps, reference, strict=True)]
        rewards[-1] += score
        after = [*v[1:], 0.0]
        deltas = [r + w - u for r, w, u in zip(rewards, after, v, strict=True)]
        row = [sum(settings.ppo.lam**j * delta for j, delta in enumerate(deltas[k:])) for k in range(len(deltas))]
        advantages.append(row)
        returns.append([a + u for a, u in zip(row, v, strict=True)])
    every = [a for row in advantages for a in row]
    mean = sum(every) / len(every)
    variance = sum((a - mean) ** 2 for a in every) / len(every)
    advantages = [[(a - mean) / math.sqrt(variance + 1e-8) for a in row] for row in advantages]
    return advantages, returns


def plain_update(
    policy: ToyPolicy,
    episodes: Sequence[Trajectory],
    scores: Sequence[float],
    optimizer: torch.optim.Optimizer,
    settings: PPOSettings,
    *,
    kl_coef: float,
    generator: torch.Generator,
) -> list[float]:
    """Update in place and return the loss of every step."""
    with torch.no_grad():
        advantages, returns = advantages_and_returns(policy, episodes, scores, settings, kl_coef)
    tokens_per_step = sum(len(steps_of(episode)) for episode in episodes) / settings.update.minibatches
    losses = []
    order = torch.randperm(len(episodes), generator=generator).tolist()
    small, more = divmod(len(episodes), settings.update.minibatches)
    for number in range(settings.update.minibatches):
        rows, order = order[: small + (number < more)], order[small + (number < more) :]
        loss = torch.zeros((), dtype=torch.float64)
        for row in rows:
            for k, at in enumerate(steps_of(episodes[row])):
                p, value = predict(policy, episodes[row], at, settings.temperature)
                ratio = p[episodes[row].ids[at]] / math.exp(episodes[row].logprobs[at])
                low, high = 1 - settings.clip, 1 + settings.clip
                a, r = advantages[row][k], returns[row][k]
                gain = torch.minimum(ratio * a, torch.clip(ratio, low, high) * a)
                loss = loss - gain + 0.5 * (value - r) ** 2 / 2
        loss = loss / tokens_per_step
        optimizer.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in policy.trained() if p.grad is not None))
        for parameter in policy.trained():
            if norm > settings.update.max_grad_norm and parameter.grad is not None:
                parameter.grad *= settings.update.max_grad_norm / norm
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
