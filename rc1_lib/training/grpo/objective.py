"""What GRPO teaches: the clipped surrogate of group-relative advantages, and the price of leaving the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rc1_lib.config.updates import Update
from rc1_lib.training.grpo.settings import GRPOSettings
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.kl import kl_k3
from rc1_lib.training.updates.logprobs import entropy, log_distribution
from rc1_lib.training.updates.losses import Loss, clipped_surrogate, entropy_loss
from rc1_lib.training.updates.own_tokens import OwnTokens


@dataclass(frozen=True, slots=True)
class GRPOObjective:
    """The objective of one update, see `rc1_lib.training.updates.objective`.

    Attributes:
        batch: all episodes.
        advantages: (B,), of every episode.
        weights: (B,), what a token of every episode counts.
        ref_logprobs: (B, T), of the sampled tokens under the reference.
        settings: of the update.
        kl_coef: price of a nat of KL to the reference, at every token.
    """

    batch: EpisodeBatch
    advantages: Tensor
    weights: Tensor
    ref_logprobs: Tensor
    settings: GRPOSettings
    kl_coef: float

    @property
    def update(self) -> Update:
        """The section of the configuration."""
        return self.settings.update

    @property
    def frozen(self) -> bool:
        """Never: there is nothing else to learn."""
        return False

    def fields(self, own: OwnTokens) -> dict[str, Tensor]:
        """What was sampled, and what every token of an episode shares."""
        return {
            "actions": own.of(self.batch.ids),
            "old_logprobs": own.of(self.batch.old_logprobs),
            "ref_logprobs": own.of(self.ref_logprobs),
            "advantages": self.advantages[own.rows],
            "weights": self.weights[own.rows],
        }

    def loss(self, policy: PolicyLike, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Surrogate, KL and entropy of a chunk of states together.

        The KL is the k3 estimate, in the loss and not in the reward.

        Source: Shao et al., "DeepSeekMath" (2024), equations 3 and 4.
        """
        settings = self.settings
        log_p_nV = log_distribution(policy.logits(states_nD), settings.temperature)
        logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
        surrogate = clipped_surrogate(
            logprobs_n, field_n["old_logprobs"], field_n["advantages"], low=settings.clip, high=settings.clip_high
        )
        gained = -(field_n["weights"] * surrogate.gains).sum()
        left = (field_n["weights"] * kl_k3(logprobs_n, field_n["ref_logprobs"])).sum()
        # Where the bonus weighs nothing the entropy is measured without a graph over the whole vocabulary.
        with torch.set_grad_enabled(settings.update.entropy_coef > 0):
            per_step = self.batch.own_tokens / settings.update.minibatches
            bonus = entropy_loss(entropy(log_p_nV), normaliser=per_step)
        loss = gained + self.kl_coef * left + settings.update.entropy_coef * bonus.loss
        losses = {"loss": loss.detach(), "policy_loss": gained.detach(), "kl_loss": left.detach()}
        return Loss(loss, {**losses, **surrogate.sums, **bonus.sums})


def token_weights(
    tokens_B: Tensor, kind: Literal["dapo", "grpo", "dr_grpo"], *, minibatches: int, most_tokens: int
) -> Tensor:
    """What a token of every episode counts in a step of the optimizer, (B,).

    `dapo`: all tokens alike, a mean over those of the step. `grpo`: a mean over each episode's tokens, then over the
    episodes. `dr_grpo`: a sum over each episode's tokens by the most that one may have, then a mean over the episodes.
    All three divide by an average step's tokens or episodes, so a minibatch weighs by what is in it.

    Sources: Yu et al., "DAPO" (2025), section 3.3; Shao et al., "DeepSeekMath" (2024), equation 3; Liu et al.,
    "Understanding R1-Zero-Like Training" (Dr. GRPO, 2025), section 3.2. The names are those of TRL's `loss_type`.

    Args:
        tokens_B: own tokens of every episode, each above 0.
        kind: one of the three.
        minibatches: steps of the optimizer that the episodes are dealt to.
        most_tokens: own tokens that an episode may have.
    """
    if kind == "dapo":
        return torch.full_like(tokens_B, minibatches / float(tokens_B.sum()))
    share = minibatches / len(tokens_B)
    return share / tokens_B if kind == "grpo" else torch.full_like(tokens_B, share / most_tokens)
