"""What supervised training teaches: the assistant's next token."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import cross_entropy

from rc1_lib.config.updates import Update
from rc1_lib.training.updates.batch import TokenBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.own_tokens import OwnTokens


@dataclass(frozen=True, slots=True)
class SFTLesson:
    """The lesson of one minibatch, see `rc1_lib.training.updates.lesson`.

    Attributes:
        batch: all demonstrations.
        update: the section of the configuration.
        tokens: own tokens of the minibatch, which the loss is a mean over.
    """

    batch: TokenBatch
    update: Update
    tokens: int

    @property
    def frozen(self) -> bool:
        """Never: there is nothing else to learn."""
        return False

    def fields(self, own: OwnTokens) -> dict[str, Tensor]:
        """The tokens that the assistant said."""
        return {"said": own.of(self.batch.ids)}

    def loss(self, policy: PolicyLike, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Cross entropy, and the sums `nats` of it and `right`, tokens that were the likeliest."""
        logits_nV, said_n = policy.logits(states_nD).float(), field_n["said"]
        nats = cross_entropy(logits_nV, said_n, reduction="sum")
        right = (logits_nV.detach().argmax(dim=-1) == said_n).sum()
        return Loss(nats / self.tokens, {"nats": nats.detach(), "right": right})
