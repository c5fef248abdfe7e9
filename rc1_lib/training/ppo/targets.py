"""What an iteration's episodes teach: values and the reference's log-probabilities, rewards, advantages, returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.ppo.gae import generalised_advantages
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.token_rewards import token_rewards
from rc1_lib.training.ppo.whiten import whiten
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import ValuedPolicyLike
from rc1_lib.training.updates.kl import kl_k1
from rc1_lib.training.updates.reading import ForwardOptions, read_episodes


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


def targets_of(
    policy: ValuedPolicyLike, batch: EpisodeBatch, settings: PPOSettings, kl_coef: float, shards: Shards = ONE
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
    options = ForwardOptions(settings.update.micro_tokens, settings.temperature, states=batch.states is None)
    read = read_episodes(policy, batch, options, shards)
    states_ND = read.states if batch.states is None else batch.states
    assert states_ND is not None, "the states are in the batch, or were read"
    values_BT = torch.zeros_like(batch.old_logprobs)
    with torch.no_grad():
        values_BT[batch.own] = policy.value_head(states_ND).to(values_BT.dtype)
    rewards_BT = token_rewards(batch.scores, kl_k1(batch.old_logprobs, read.ref_logprobs), batch.own, kl_coef)
    advantages_BT, returns_BT = generalised_advantages(
        rewards_BT, values_BT, batch.own, gamma=settings.gamma, lam=settings.ppo.lam
    )
    if settings.ppo.whiten:
        advantages_BT = whiten(advantages_BT, batch.own)
    return Targets(read.ref_logprobs, values_BT, rewards_BT, advantages_BT, returns_BT, states_ND)
