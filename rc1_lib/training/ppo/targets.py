"""What an iteration's episodes teach: values and the reference's log-probabilities, rewards, advantages, returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.ppo.batch import PPOBatch
from rc1_lib.training.ppo.gae import generalised_advantages
from rc1_lib.training.ppo.interface import PolicyLike
from rc1_lib.training.ppo.logprobs import token_logprobs
from rc1_lib.training.ppo.micro_batches import micro_batches
from rc1_lib.training.ppo.own_tokens import OwnTokens, own_tokens
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.token_rewards import kl_k1, token_rewards
from rc1_lib.training.ppo.whiten import whiten
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.spans import Part, span


@dataclass(frozen=True, slots=True)
class Targets:
    """Constants of an update, all (B, T) and 0 where not own.

    Attributes:
        ref_logprobs: of the sampled tokens under the reference.
        values: of the state before each own token, under the policy as sampled.
        rewards: score and KL price per token.
        advantages: whitened if the settings say so.
        returns: what values should have been.
        states: (N, D), the states before the own tokens, row by row.
    """

    ref_logprobs: Tensor
    values: Tensor
    rewards: Tensor
    advantages: Tensor
    returns: Tensor
    states: Tensor


@dataclass(frozen=True, slots=True)
class _Read:
    """What reading the rows of a shard came to, at its n own tokens."""

    rows: Tensor
    steps: Tensor
    ref_logprobs: Tensor
    states: Tensor | None


def targets_of(
    policy: PolicyLike, batch: PPOBatch, settings: PPOSettings, kl_coef: float, shards: Shards = ONE
) -> Targets:
    """Scores the batch with the policy as it is and with the reference; no gradients.

    Where the batch holds the states that its tokens were sampled from, the policy need not read the episodes again.

    Args:
        policy: not moved.
        batch: on the policy's device.
        settings: of the update.
        kl_coef: price of a nat of KL to the reference.
        shards: how the reading is dealt out.
    """
    values_BT = torch.zeros_like(batch.old_logprobs)
    ref_BT = torch.zeros_like(batch.old_logprobs)
    place_BT = batch.own.flatten().cumsum(0).view_as(batch.own) - 1
    states_ND = batch.states
    parts = shards.deal(range(len(batch)), batch.lengths.tolist())
    with torch.no_grad():
        read = shards.exchange({shard: _read(policy, batch, parts[shard], settings) for shard in shards.mine})
        for one in filter(None, read):
            ref_BT[one.rows, one.steps] = one.ref_logprobs.to(ref_BT.dtype)
            if one.states is not None:
                if states_ND is None:
                    states_ND = one.states.new_empty((batch.own_tokens, one.states.shape[1]))
                states_ND[place_BT[one.rows, one.steps]] = one.states
        assert states_ND is not None, "the states are in the batch, or were read"
        values_BT[batch.own] = policy.value_head(states_ND).to(values_BT.dtype)
    rewards_BT = token_rewards(batch.scores, kl_k1(batch.old_logprobs, ref_BT), batch.own, kl_coef)
    advantages_BT, returns_BT = generalised_advantages(
        rewards_BT, values_BT, batch.own, gamma=settings.ppo.gamma, lam=settings.ppo.lam
    )
    if settings.ppo.whiten:
        advantages_BT = whiten(advantages_BT, batch.own)
    return Targets(ref_BT, values_BT, rewards_BT, advantages_BT, returns_BT, states_ND)


def _read(policy: PolicyLike, batch: PPOBatch, rows: Sequence[int], settings: PPOSettings) -> _Read | None:
    """Read some rows with the reference, and with the policy where the batch lacks its states; None without rows."""
    if not rows:
        return None
    parts = micro_batches(rows, batch.lengths.tolist(), settings.ppo.micro_tokens)
    owns = [own_tokens(batch, part) for part in parts]
    with span(Part.REFERENCE):
        states_nD = None if batch.states is not None else torch.cat([own.hidden(policy) for own in owns])
    with span(Part.REFERENCE), policy.reference():
        ref_n = torch.cat([_logprobs(policy, batch, own, settings.temperature) for own in owns])
    return _Read(torch.cat([own.rows for own in owns]), torch.cat([own.steps for own in owns]), ref_n, states_nD)


def _logprobs(policy: PolicyLike, batch: PPOBatch, own: OwnTokens, temperature: float) -> Tensor:
    """Log-probabilities (N,) of the own tokens under the policy as it stands."""
    hidden_ND, tokens_N = own.hidden(policy), own.of(batch.ids)
    parts = [token_logprobs(policy.logits(hidden_ND[part]), tokens_N[part], temperature) for part in own.chunks()]
    return torch.cat(parts)
