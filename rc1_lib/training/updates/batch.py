"""Collate episodes or demonstrations into one right-padded batch, and split its rows into mini- and micro-batches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
import torch
from torch import Tensor

from rc1_lib.training.device import to_device

if TYPE_CHECKING:
    from rc1_lib.records import Row
    from rc1_lib.training.chat_format import ChatFormat
    from rc1_lib.training.rollout.trajectory import Trajectory


class _Tokens(Protocol):
    """A tokenized dialogue: an episode or a demonstration."""

    @property
    def row_id(self) -> str: ...
    @property
    def ids(self) -> Sequence[int]: ...
    @property
    def action_mask(self) -> Sequence[bool]: ...


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Dialogues of a step: B rows of up to T tokens, each up to its last action token.

    Attributes:
        ids: int64 (B, T), right-padded.
        action_mask: bool (B, T), True for action tokens: those that the policy sampled or learns to write. Never True
            at position 0 or in the padding.
        lengths: int64 (B,), number of tokens up to and including the last action token.
    """

    ids: Tensor
    action_mask: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        """Number of dialogues."""
        return len(self.ids)

    @property
    def action_count(self) -> int:
        """Number of action tokens of all dialogues."""
        return int(self.action_mask.sum())

    def cut(self, rows_b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return some rows, padded to their longest: ids, action mask, and an attention mask (int64), each (b, t)."""
        lengths_b = self.lengths[rows_b]
        longest = int(lengths_b.max())
        place_t = torch.arange(longest, device=self.ids.device)
        mask_bt = (place_t[None] < lengths_b[:, None]).long()
        return self.ids[rows_b, :longest], self.action_mask[rows_b, :longest], mask_bt

    def on(self, device: torch.device | str) -> Self:
        """Return the batch on a device."""
        return type(self)(**to_device(self.parts(), torch.device(device)))

    def parts(self) -> dict[str, Tensor | None]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class EpisodeBatch(TokenBatch):
    """Episodes of an iteration. The policy sampled their action tokens.

    Attributes:
        old_logprobs: fp32 (B, T), log-probabilities at sampling; 0 for other tokens.
        scores: fp32 (B,), score of each episode.
        groups: int64 (B,), the same number for all episodes of one row, from 0.
        expected: fp32 (B,), mean score of the batch's other episodes on rows of the same kind; 0 if kinds were not
            given.
        states: (N, D), the hidden state from which each action token was sampled, row by row; None if they were not
            kept and have to be recomputed.
    """

    old_logprobs: Tensor
    scores: Tensor
    groups: Tensor
    expected: Tensor
    states: Tensor | None = None


def batch_of(parts: Mapping[str, Tensor | None]) -> TokenBatch:
    """Return the batch with these `parts`."""
    fitting: type[TokenBatch] = EpisodeBatch if "scores" in parts else TokenBatch
    return fitting(**cast(dict[str, Any], parts))


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A dialogue of the pool as tokens.

    Attributes:
        row_id: id of its row.
        ids: token ids.
        action_mask: True for tokens of the assistant.
    """

    row_id: str
    ids: Sequence[int]
    action_mask: Sequence[bool]

    @classmethod
    def of(cls, row: Row, form: ChatFormat) -> Self:
        """Tokenize the dialogue of a pool row."""
        return cls(str(row["id"]), *form.dialogue_ids(row["messages"]))


def collate_demonstrations(demonstrations: Sequence[Demonstration], pad_id: int) -> TokenBatch:
    """Collate demonstrations, sorted and cut as in `collate`.

    Args:
        demonstrations: at least one, each with at least one action token after its first token.
        pad_id: any valid token id.
    """
    assert demonstrations, "a batch needs at least one demonstration"
    ordered = sorted(demonstrations, key=lambda one: (one.row_id, one.ids))
    return TokenBatch(*_padded(ordered, [_own_length(one) for one in ordered], pad_id))


def collate(
    trajectories: Sequence[Trajectory],
    scores: Sequence[float],
    pad_id: int,
    *,
    kinds: Sequence[str] | None = None,
    dtype: torch.dtype = torch.float32,
) -> EpisodeBatch:
    """Collate episodes with their scores.

    Tokens after an episode's last action token are cut off, because nothing is learned from them. Rows are sorted by
    row id and tokens, so that the update does not depend on the order in which episodes finished.

    Args:
        trajectories: at least one, each with at least one action token after its first token.
        scores: one finite number per episode.
        pad_id: any valid token id.
        kinds: kind of each episode's row, known before it begins; None: nothing is expected.
        dtype: of log-probabilities and scores; tests use float64.

    Raises:
        ValueError: if a score, or the log-probability of an action token, is not finite.
    """
    assert trajectories, "a batch needs at least one episode"
    assert len(trajectories) == len(scores), f"{len(trajectories)} episodes, {len(scores)} scores"
    expected = [0.0] * len(scores) if kinds is None else _expected(scores, kinds)
    found = sorted(zip(trajectories, scores, expected, strict=True), key=lambda one: (one[0].row_id, one[0].ids))
    pairs = [(trajectory, score) for trajectory, score, _ in found]
    lengths = [_checked_length(trajectory, score) for trajectory, score in pairs]
    ids, action_mask, ends = _padded([trajectory for trajectory, _ in pairs], lengths, pad_id)
    logprobs = torch.zeros(ids.shape, dtype=dtype)
    for row, ((trajectory, _), length) in enumerate(zip(pairs, lengths, strict=True)):
        logprobs[row, :length] = torch.tensor(trajectory.logprobs[:length], dtype=dtype)
    return EpisodeBatch(
        ids=ids,
        action_mask=action_mask,
        lengths=ends,
        old_logprobs=logprobs.masked_fill(~action_mask, 0.0),
        scores=torch.tensor([score for _, score in pairs], dtype=dtype),
        groups=_groups([trajectory.row_id for trajectory, _ in pairs]),
        expected=torch.tensor([mean for _, _, mean in found], dtype=dtype),
        states=_states([trajectory for trajectory, _ in pairs]),
    )


def _padded(dialogues: Sequence[_Tokens], lengths: Sequence[int], pad_id: int) -> tuple[Tensor, Tensor, Tensor]:
    """Build `ids`, `action_mask` and `lengths` of a batch."""
    shape = (len(dialogues), max(lengths))
    ids = torch.full(shape, pad_id, dtype=torch.long)
    action_mask = torch.zeros(shape, dtype=torch.bool)
    for row, (dialogue, length) in enumerate(zip(dialogues, lengths, strict=True)):
        ids[row, :length] = torch.tensor(dialogue.ids[:length])
        action_mask[row, :length] = torch.tensor(dialogue.action_mask[:length])
    return ids, action_mask, torch.tensor(lengths)


def _expected(scores: Sequence[float], kinds: Sequence[str]) -> list[float]:
    """Return the mean score of the other episodes of each one's kind, or of all others where it is the only one.

    Its own score is left out, since it depends on its actions: then the mean only lowers the variance of a policy
    gradient. Source: Kool et al., "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019), there among samples of
    one prompt.
    """
    sums, counts = dict[str, float](), Counter(kinds)
    for score, kind in zip(scores, kinds, strict=True):
        sums[kind] = sums.get(kind, 0.0) + score
    total, others = sum(scores), len(scores) - 1
    return [
        (sums[kind] - score) / (counts[kind] - 1) if counts[kind] > 1 else (total - score) / others if others else 0.0
        for score, kind in zip(scores, kinds, strict=True)
    ]


def _groups(row_ids: Sequence[str]) -> Tensor:
    numbers = {row_id: number for number, row_id in enumerate(dict.fromkeys(row_ids))}
    return torch.tensor([numbers[row_id] for row_id in row_ids])


def _states(trajectories: Sequence[Trajectory]) -> Tensor | None:
    """Concatenate the states of all episodes; None if any episode kept none."""
    kept = [trajectory.states for trajectory in trajectories if trajectory.states is not None]
    return torch.from_numpy(np.concatenate(kept)) if len(kept) == len(trajectories) else None


def _checked_length(trajectory: Trajectory, score: float) -> int:
    """Check that an episode's fields are consistent; return its number of tokens up to the last action token."""
    own, logprobs = trajectory.action_mask, trajectory.logprobs
    length = _own_length(trajectory)
    assert len(own) == len(logprobs), f"{len(own)} own, {len(logprobs)} logprobs"
    if not math.isfinite(score):
        raise ValueError(f"the episode of row '{trajectory.row_id}' has the score {score}, expected a finite number")
    for place, (mine, logprob) in enumerate(zip(own, logprobs, strict=True)):
        if mine and not math.isfinite(logprob):
            raise ValueError(
                f"token {place} of the episode of row '{trajectory.row_id}' was sampled with log-probability "
                f"{logprob}, expected a finite number"
            )
    return length


def _own_length(dialogue: _Tokens) -> int:
    """Return the number of tokens up to the last action token."""
    assert len(dialogue.ids) == len(dialogue.action_mask), f"{len(dialogue.ids)} ids, {len(dialogue.action_mask)} own"
    assert any(dialogue.action_mask), f"row '{dialogue.row_id}' has no action token"
    assert not dialogue.action_mask[0], (
        f"row '{dialogue.row_id}' has no prompt, so its first token has no log-probability"
    )
    return max(place for place, mine in enumerate(dialogue.action_mask) if mine) + 1


def minibatch_rows(rows: int, minibatches: int, generator: torch.Generator) -> list[list[int]]:
    """Shuffle the rows 0..rows-1 and split them into `minibatches` parts whose sizes differ by at most 1.

    Args:
        rows: at least `minibatches`.
        minibatches: at least 1.
        generator: on the CPU; draws one permutation.
    """
    assert rows >= minibatches, f"{rows} rows cannot fill {minibatches} minibatches"
    order = torch.randperm(rows, generator=generator)
    return [part.tolist() for part in order.tensor_split(minibatches)]


def micro_batches(rows: Sequence[int], lengths: Sequence[int], micro_tokens: int) -> Iterator[list[int]]:
    """Split rows into micro-batches of similar length that stay within a token budget.

    Args:
        rows: indices into `lengths`.
        lengths: number of tokens of every row of the batch.
        micro_tokens: most tokens of a micro-batch, including padding. A longer row gets a micro-batch of its own.

    Yields:
        Row indices, shortest rows first.
    """
    part: list[int] = []
    for row in sorted(rows, key=lambda row: (lengths[row], row)):
        if part and (len(part) + 1) * lengths[row] > micro_tokens:
            yield part
            part = []
        part.append(row)
    if part:
        yield part
