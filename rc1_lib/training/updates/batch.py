"""Episodes as one right-padded batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from rc1_lib.training.device import to_device

if TYPE_CHECKING:
    from rc1_lib.training.rollout.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class EpisodeBatch:
    """Episodes of an iteration; B of them, T tokens in the longest, up to its last own token.

    Attributes:
        ids: int64 (B, T), right-padded.
        own: bool (B, T), True where the policy sampled the token; never at position 0 and never in the padding.
        lengths: int64 (B,), tokens up to and including the last own one.
        old_logprobs: fp32 (B, T), log-probabilities as sampled; 0 where not own.
        scores: fp32 (B,), what each episode was worth.
        groups: int64 (B,), the same number for all episodes on one row, from 0.
        states: (N, D), the hidden state before each own token as it was sampled, row by row; None where they were not
            kept, and are computed again.
    """

    ids: Tensor
    own: Tensor
    lengths: Tensor
    old_logprobs: Tensor
    scores: Tensor
    groups: Tensor
    states: Tensor | None = None

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self.ids)

    @property
    def own_tokens(self) -> int:
        """Tokens of the policy in all episodes together."""
        return int(self.own.sum())

    def to(self, device: torch.device | str) -> EpisodeBatch:
        """The batch on a device."""
        return EpisodeBatch(
            **{field.name: to_device(getattr(self, field.name), torch.device(device)) for field in fields(self)}
        )


def collate(
    trajectories: Sequence[Trajectory], scores: Sequence[float], pad_id: int, *, dtype: torch.dtype = torch.float32
) -> EpisodeBatch:
    """One batch of episodes and what each was worth.

    What follows the last own token of an episode is cut off, since nothing is learned from it. Rows are put in order
    of row id and tokens, so that the update does not depend on the order in which episodes came in.

    Args:
        trajectories: at least one, each with at least one own token after its first token.
        scores: one finite number per episode.
        pad_id: any valid token id.
        dtype: of log-probabilities and scores; float64 serves tests.

    Raises:
        ValueError: for a score, or a log-probability of an own token, that is no finite number.
    """
    assert trajectories, "a batch needs at least one episode"
    assert len(trajectories) == len(scores), f"{len(trajectories)} episodes, {len(scores)} scores"
    pairs = sorted(zip(trajectories, scores, strict=True), key=lambda pair: (pair[0].row_id, pair[0].ids))
    lengths = [_checked_length(trajectory, score) for trajectory, score in pairs]
    shape = (len(pairs), max(lengths))
    ids = torch.full(shape, pad_id, dtype=torch.long)
    own = torch.zeros(shape, dtype=torch.bool)
    logprobs = torch.zeros(shape, dtype=dtype)
    for row, ((trajectory, _), length) in enumerate(zip(pairs, lengths, strict=True)):
        ids[row, :length] = torch.tensor(trajectory.ids[:length])
        own[row, :length] = torch.tensor(trajectory.own[:length])
        logprobs[row, :length] = torch.tensor(trajectory.logprobs[:length], dtype=dtype)
    return EpisodeBatch(
        ids=ids,
        own=own,
        lengths=torch.tensor(lengths),
        old_logprobs=logprobs.masked_fill(~own, 0.0),
        scores=torch.tensor([score for _, score in pairs], dtype=dtype),
        groups=_groups([trajectory.row_id for trajectory, _ in pairs]),
        states=_states([trajectory for trajectory, _ in pairs]),
    )


def _groups(row_ids: Sequence[str]) -> Tensor:
    numbers = {row_id: number for number, row_id in enumerate(dict.fromkeys(row_ids))}
    return torch.tensor([numbers[row_id] for row_id in row_ids])


def _states(trajectories: Sequence[Trajectory]) -> Tensor | None:
    """The states of all episodes behind each other, if all kept theirs."""
    kept = [trajectory.states for trajectory in trajectories if trajectory.states is not None]
    return torch.from_numpy(np.concatenate(kept)) if len(kept) == len(trajectories) else None


def _checked_length(trajectory: Trajectory, score: float) -> int:
    """The tokens of an episode up to its last own one, once its fields agree."""
    ids, own, logprobs = trajectory.ids, trajectory.own, trajectory.logprobs
    assert len(ids) == len(own) == len(logprobs), f"{len(ids)} ids, {len(own)} own, {len(logprobs)} logprobs"
    assert any(own), f"episode of row '{trajectory.row_id}' has no token of the policy"
    assert not own[0], f"episode of row '{trajectory.row_id}' has no prompt: its first token has no log-probability"
    if not math.isfinite(score):
        raise ValueError(f"the episode of row '{trajectory.row_id}' has the score {score}, expected a finite number")
    for place, (mine, logprob) in enumerate(zip(own, logprobs, strict=True)):
        if mine and not math.isfinite(logprob):
            raise ValueError(
                f"token {place} of the episode of row '{trajectory.row_id}' was sampled with log-probability "
                f"{logprob}, expected a finite number"
            )
    return max(place for place, mine in enumerate(own) if mine) + 1
