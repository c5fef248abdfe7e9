"""What an iteration's episodes teach: values and the reference's log-probabilities, rewards, advantages, returns."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Targets:
    """Constants of an update, all (B, T) and 0 where not own.

    Attributes:
        ref_logprobs: of the sampled tokens under the reference.
        values: of the state before each own token, under the policy as sampled.
        rewards: score and KL price per token.
        advantages: whitened if the settings say so.
        returns: what values should have been.
        states: (N, D), the states before the own tokens, row by row, where `value_epochs` asks for them.
    """

    ref_logprobs: Tensor
    values: Tensor
    rewards: Tensor
    advantages: Tensor
    returns: Tensor
    states: Tensor | None


def targets_of(policy: PolicyLike, batch: PPOBatch, settings: PPOSettings, kl_coef: float) -> Targets:
    """Scores the batch with the policy as it is and with the reference; no gradients."""
    values_BT = torch.zeros_like(batch.old_logprobs)
    ref_BT = torch.zeros_like(batch.old_logprobs)
    place_BT = batch.own.flatten().cumsum(0).view_as(batch.own) - 1
    states_ND: Tensor | None = None
    with torch.no_grad():
        for rows in micro_batches(range(len(batch)), batch.lengths.tolist(), settings.ppo.micro_tokens):
            own = own_tokens(batch, rows)
            hidden_nD = own.hidden(policy)
            values_BT[own.rows, own.steps] = policy.value_head(hidden_nD).to(values_BT.dtype)
            if settings.ppo.value_epochs:
                if states_ND is None:
                    states_ND = hidden_nD.new_empty((batch.own_tokens, hidden_nD.shape[1]))
                states_ND[own.of(place_BT)] = hidden_nD
            with policy.reference():
                ref_BT[own.rows, own.steps] = _logprobs(policy, batch, own, settings.temperature).to(ref_BT.dtype)
    rewards_BT = token_rewards(batch.scores, kl_k1(batch.old_logprobs, ref_BT), batch.own, kl_coef)
    advantages_BT, returns_BT = generalised_advantages(
        rewards_BT, values_BT, batch.own, gamma=settings.ppo.gamma, lam=settings.ppo.lam
    )
    if settings.ppo.whiten:
        advantages_BT = whiten(advantages_BT, batch.own)
    return Targets(ref_BT, values_BT, rewards_BT, advantages_BT, returns_BT, states_ND)


def _logprobs(policy: PolicyLike, batch: PPOBatch, own: OwnTokens, temperature: float) -> Tensor:
    """Log-probabilities (N,) of the own tokens under the policy as it stands."""
    hidden_ND, tokens_N = own.hidden(policy), own.of(batch.ids)
    parts = [token_logprobs(policy.logits(hidden_ND[part]), tokens_N[part], temperature) for part in own.chunks()]
    return torch.cat(parts)
