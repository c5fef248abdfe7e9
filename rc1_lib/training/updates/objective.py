"""What an update teaches: which numbers belong to an own token, and the loss of some of them."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from rc1_lib.config.updates import Steps, Update
from rc1_lib.training.updates.batch import TokenBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.own_tokens import OwnTokens


class Objective(Protocol):
    """What stays the same throughout one update; one of every algorithm."""

    @property
    def batch(self) -> TokenBatch:
        """All episodes, or demonstrations."""
        ...

    @property
    def update(self) -> Steps:
        """The section of the configuration."""
        ...

    @property
    def frozen(self) -> bool:
        """Whether the policy itself stays as it is."""
        ...

    def fields(self, own: OwnTokens) -> dict[str, Tensor]:
        """The numbers (N,) that `loss` needs of own tokens, by name."""
        ...

    def loss(self, policy: PolicyLike, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """The loss of a few own tokens, and sums over them; `loss` is one, and all that `Tally.metrics` names.

        Args:
            policy: as it stands.
            states_nD: the states before the tokens.
            field_n: what `fields` gave, of these tokens.
        """
        ...


class EpisodeObjective(Objective, Protocol):
    """An objective of episodes, whose update a KL may end."""

    @property
    def update(self) -> Update:
        """The section of the configuration."""
        ...
