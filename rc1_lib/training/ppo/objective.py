"""What PPO teaches: the clipped surrogate, the values, and where it is paid for, entropy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rc1_lib.config.updates import Update
from rc1_lib.training.ppo.losses import policy_loss, value_loss
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.targets import Targets
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.logprobs import entropy, log_distribution
from rc1_lib.training.updates.losses import Loss, entropy_loss
from rc1_lib.training.updates.own_tokens import OwnTokens


@dataclass(frozen=True, slots=True)
class PPOObjective:
    """The objective of one update, see `rc1_lib.training.updates.objective`.

    Attributes:
        value_head: learns next to the policy.
        batch: all episodes.
        targets: of the batch.
        settings: of the update.
        normaliser: own tokens of one optimizer step, the same number for each.
        frozen: whether only the value head learns.
    """

    value_head: nn.Module
    batch: EpisodeBatch
    targets: Targets
    settings: PPOSettings
    normaliser: float
    frozen: bool

    @property
    def update(self) -> Update:
        """The section of the configuration."""
        return self.settings.update

    def fields(self, own: OwnTokens) -> dict[str, Tensor]:
        """What was sampled, and the targets."""
        return {
            "actions": own.of(self.batch.ids),
            "old_logprobs": own.of(self.batch.old_logprobs),
            "advantages": own.of(self.targets.advantages),
            "old_values": own.of(self.targets.values),
            "returns": own.of(self.targets.returns),
        }

    def loss(self, policy: PolicyLike, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Policy, entropy and value loss of a chunk of states together."""
        settings, normaliser = self.settings, self.normaliser
        with torch.set_grad_enabled(not self.frozen):
            log_p_nV = log_distribution(policy.logits(states_nD), settings.temperature)
            logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
            surrogate = policy_loss(
                logprobs_n, field_n["old_logprobs"], field_n["advantages"], clip=settings.clip, normaliser=normaliser
            )
        # Where the bonus weighs nothing the entropy is measured without a graph over the whole vocabulary.
        with torch.set_grad_enabled(not self.frozen and settings.update.entropy_coef > 0):
            bonus = entropy_loss(entropy(log_p_nV), normaliser=normaliser)
        worth = value_loss(
            self.value_head(states_nD),
            field_n["old_values"],
            field_n["returns"],
            clip=settings.value_clip,
            normaliser=normaliser,
        )
        loss = surrogate.loss + settings.update.entropy_coef * bonus.loss + settings.value_coef * worth.loss
        return Loss(loss, {"loss": loss.detach(), **surrogate.sums, **bonus.sums, **worth.sums})
