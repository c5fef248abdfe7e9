"""What PPO asks of a policy: hidden states, logits, a value head, and the reference inside a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from torch import Tensor, nn


class PolicyLike(Protocol):
    """A causal language model with a value head; `rc1_lib.training.policy.Policy` is one.

    Nothing random may be active in it (dropout), or the ratios of PPO compare two draws instead of two policies.
    """

    @property
    def value_head(self) -> nn.Module:
        """Hidden states (..., D) -> values (...), in at least fp32."""
        ...

    def hidden(self, ids_BT: Tensor, /) -> Tensor:
        """The last hidden states (B, T, D), after the final norm, of right-padded ids."""
        ...

    def logits(self, hidden: Tensor, /) -> Tensor:
        """The logits (..., V) of the next token at hidden states (..., D)."""
        ...

    def reference(self) -> AbstractContextManager[None]:
        """Inside, the policy is the reference: the base without its adapter."""
        ...

    def modules(self) -> Iterator[nn.Module]:
        """All modules, as of `torch.nn.Module`."""
        ...
