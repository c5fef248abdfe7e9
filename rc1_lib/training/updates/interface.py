"""What an update asks of a policy: hidden states, logits, and the reference inside a context; PPO, a value head too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from torch import Tensor, nn


class PolicyLike(Protocol):
    """A causal language model with an adapter; `rc1_lib.training.policy.Policy` is one.

    Nothing random may be active in it (dropout), or ratios compare two draws instead of two policies.
    """

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


class ValuedPolicyLike(PolicyLike, Protocol):
    """A policy with a value head; `rc1_lib.training.policy.ValuedPolicy` is one."""

    @property
    def value_head(self) -> nn.Module:
        """Hidden states (..., D) -> values (...), in at least fp32."""
        ...
