"""A policy of a few dozen parameters, and training episodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rc1_lib.config.updates import PPO, Update
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.training.engines.torch_ppo import PPOSettings
from rc1_lib.training.policy import ValueHead
from rc1_lib.training.rollout.trajectory import Trajectory

VOCABULARY = 9


class ToyPolicy(nn.Module):
    """A recurrent network with a frozen base and a top layer as adapter."""

    def __init__(self, *, vocabulary: int = VOCABULARY, width: int = 4, seed: int = 0, spread: float = 0.5) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocabulary, width)
            self.recurrent = nn.GRU(width, width, batch_first=True)
            self.unembedding = nn.Linear(width, vocabulary)
            for parameter in self.parameters():
                parameter.requires_grad_(False)
            self.adapter = nn.Linear(width, width)
            self.value_head = ValueHead(width)
            for parameter in (*self.adapter.parameters(), *self.value_head.parameters()):
                nn.init.normal_(parameter, std=spread)
        self.adapted = True
        self.double()

    def hidden(self, ids_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        states_BTD = self.recurrent(self.embedding(ids_BT))[0]
        return states_BTD + self.adapter(states_BTD) if self.adapted else states_BTD

    def logits(self, hidden: Tensor) -> Tensor:
        return self.unembedding(hidden)

    @contextmanager
    def reference(self) -> Iterator[None]:
        self.adapted = False
        yield
        self.adapted = True

    def trained(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.parameters() if parameter.requires_grad]


def update_section(**changes: Any) -> Update:
    """A plain section with `changes`; no update ends early."""
    plain = dict(
        minibatches=1,
        micro_tokens=64,
        max_grad_norm=1.0,
        kl_stop=1.0,
        group_size=3,
    )
    section = Update.model_validate(plain | changes)
    return section if "kl_stop" in changes else section.model_copy(update={"kl_stop": math.inf})  # a file cannot


def parted(changes: dict[str, Any], own: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split changes into those of the shared section and those of the keys `own`."""
    return {k: v for k, v in changes.items() if k not in own}, {k: v for k, v in changes.items() if k in own}


def settings(*, clip: float = 0.2, temperature: float = 1.0, **changes: Any) -> PPOSettings:
    """Plain settings with `changes` of the sections; no update ends early, and value_epochs is 0."""
    shared, own = parted(changes, PPO.model_fields)
    plain = dict(lam=0.9, value_lr=0.01, value_warm_up=0, value_epochs=0)
    ppo = PPO.model_validate(plain | own)
    return PPOSettings(update_section(**shared), ppo, clip, temperature)


def episode(row_id: str, parts: Sequence[tuple[bool, Sequence[int]]], logprobs: Sequence[float]) -> Trajectory:
    """Make an episode of (own, ids) parts, with the log-probabilities of its own tokens in order."""
    ids = tuple(token for _, run in parts for token in run)
    own = tuple(mine for mine, run in parts for _ in run)
    rest = iter(logprobs)
    ends = [at for at, mine in enumerate(own) if mine and not (at + 1 < len(own) and own[at + 1])]
    outcome = EpisodeOutcome(EpisodeStatus.ANSWERED, "", True, False, False, 0, 0, len(ends), 0, 0, 0, len(ids))
    return Trajectory(
        row_id=row_id,
        ids=ids,
        prompt_tokens=own.index(True),
        action_mask=own,
        logprobs=tuple(next(rest) if mine else math.nan for mine in own),
        turn_ends=tuple(ends),
        outcome=outcome,
        messages=(),
    )


def random_episodes(count: int, *, vocabulary: int = VOCABULARY, seed: int = 0) -> tuple[list[Trajectory], list[float]]:
    """Episodes of one to three turns, some with an observation after the last turn, and their scores."""
    draw = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=draw))

    def run(longest: int) -> list[int]:
        return torch.randint(0, vocabulary, (number(1, longest + 1),), generator=draw).tolist()

    episodes, scores = [], []
    for row in range(count):
        parts: list[tuple[bool, list[int]]] = [(False, run(4))]
        for _ in range(number(1, 4)):
            parts += [(True, run(4)), (False, run(3))]
        if row % 3:
            parts.pop()
        own = sum(len(tokens) for mine, tokens in parts if mine)
        logprobs = (torch.rand(own, generator=draw, dtype=torch.float64) * 0.8 - 2.6).tolist()
        episodes.append(episode(f"row-{row:02}", parts, logprobs))
        scores.append(float(torch.rand((), generator=draw)))
    return episodes, scores
