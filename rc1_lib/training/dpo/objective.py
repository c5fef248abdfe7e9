"""What DPO teaches, as a weight on the log-probability of every token.

The loss of a pair hangs on sums over two whole episodes, which need not share a forward pass. Its gradient by a token's
log-probability is the same number for all tokens of an episode; so that number is worked out first, without gradients,
and then every pass goes backward from weighted log-probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rc1_lib.config.updates import Update
from rc1_lib.training.dpo.pairs import Pair
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.logprobs import entropy, log_distribution
from rc1_lib.training.updates.losses import Loss, clipped_surrogate, entropy_loss
from rc1_lib.training.updates.micro_batches import minibatch_rows
from rc1_lib.training.updates.own_tokens import OwnTokens
from rc1_lib.training.updates.reading import ForwardOptions, episode_logprobs


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pair looked like before a step was taken on it."""

    loss: float
    margin: float


@dataclass(frozen=True, slots=True)
class DPOObjective:
    """The objective of one update, see `rc1_lib.training.updates.objective`.

    Attributes:
        batch: all takes.
        pairs: which of them are compared.
        ref_B: log-probability of every take under the reference.
        section: of the configuration.
        temperature: that log-probabilities are taken under.
        beta: price of a nat of KL to the reference.
        weights: (B,), the loss's derivative by the log-probability of every token of an episode, as `minibatches` found
            it for the rows that it gave last.
        seen: what `minibatches` found of the pairs that differ.
    """

    batch: EpisodeBatch
    pairs: Sequence[Pair]
    ref_B: Tensor
    section: Update
    temperature: float
    beta: float
    weights: Tensor
    seen: list[Seen] = field(default_factory=list)

    @property
    def update(self) -> Update:
        """The section of the configuration."""
        return self.section

    @property
    def frozen(self) -> bool:
        """Never: there is nothing else to learn."""
        return False

    def minibatches(self, policy: PolicyLike, generator: torch.Generator, shards: Shards) -> Iterator[list[int]]:
        """The rows of every step, whole pairs, weighed with the policy as it then stands.

        The loss of a pair is -log sigmoid(beta * (how much likelier than under the reference the chosen take is, less
        the same of the rejected one)); a step's is their mean over an average step's pairs.

        Source: Rafailov et al., "Direct Preference Optimization" (2023), equation 7.
        """
        steps = min(self.section.minibatches, len(self.pairs))
        for _ in range(self.section.epochs):
            for numbers in minibatch_rows(len(self.pairs), steps, generator):
                some = [self.pairs[number] for number in numbers]
                rows = [row for pair in some for row in (pair.chosen, pair.rejected)]
                self._weigh(policy, some, rows, steps / len(self.pairs), shards)
                yield rows

    def _weigh(
        self, policy: PolicyLike, some: Sequence[Pair], rows: Sequence[int], share: float, shards: Shards
    ) -> None:
        options = ForwardOptions(self.section.micro_tokens, self.temperature)
        gained_B = episode_logprobs(policy, self.batch, rows, options, shards) - self.ref_B
        self.weights.zero_()
        for pair in some:
            if not pair.differ:
                continue
            margin = self.beta * (gained_B[pair.chosen] - gained_B[pair.rejected])
            pull = share * self.beta * torch.sigmoid(-margin)
            self.weights[pair.chosen] = -pull
            self.weights[pair.rejected] = pull
            self.seen.append(Seen(float(softplus(-margin)), float(margin)))

    def fields(self, own: OwnTokens) -> dict[str, Tensor]:
        """What was sampled, and the weight that every token of an episode shares."""
        return {
            "actions": own.of(self.batch.ids),
            "old_logprobs": own.of(self.batch.old_logprobs),
            "weights": self.weights[own.rows],
        }

    def loss(self, policy: PolicyLike, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Weighted log-probabilities, whose gradient is that of the pairs' loss; and the entropy bonus."""
        log_p_nV = log_distribution(policy.logits(states_nD), self.temperature)
        logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
        pulled = (field_n["weights"] * logprobs_n).sum()
        # Nothing is clipped; the ratios are looked at, since the KL may end the update.
        nothing = torch.zeros_like(pulled)
        ratios = clipped_surrogate(logprobs_n.detach(), field_n["old_logprobs"], nothing, low=1.0, high=1.0)
        with torch.set_grad_enabled(self.section.entropy_coef > 0):
            bonus = entropy_loss(entropy(log_p_nV), normaliser=self.batch.own_tokens / self.section.minibatches)
        loss = pulled + self.section.entropy_coef * bonus.loss
        return Loss(loss, {"loss": loss.detach(), "policy_loss": pulled.detach(), **ratios.sums, **bonus.sums})
