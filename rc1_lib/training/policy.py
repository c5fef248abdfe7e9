"""The policy: a causal language model with its LoRA adapter, and a value head for algorithms that need one.

The reference policy is the same model with the adapter disabled, so no second copy is in memory. For rows of a file all
weights can be trained instead, without an adapter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor, nn
from torch.nn.functional import hardshrink
from transformers import PreTrainedModel

from rc1_lib.errors import RC1Error
from rc1_lib.training.device import to_device
from rc1_lib.training.train_config import LoraSection


def _without_tiny(gradient: Tensor) -> Tensor:
    """Return zeros for numbers near 0: a policy that is sure has many below 1e-38, which a CPU multiplies slowly."""
    return hardshrink(gradient, 1e-30)


class Policy(nn.Module):
    """A causal language model with an adapter, or one whose weights are all trained.

    Dropout must be off while it learns from episodes. Otherwise the ratios would compare two random draws instead of
    two policies.

    Attributes:
        causal: the transformers model. Its linear layers are wrapped by peft.
        peft: the model with its adapter; without an adapter the same object as `causal`.
        part: name of the trained weights in the engine's state: `adapter` or `model`.
    """

    peft: PeftModel

    def __init__(self, causal: PreTrainedModel, adapter: LoraSection, seed: int) -> None:
        """Freeze the model and add a new adapter, which changes no output yet. If it is disabled, change nothing.

        Args:
            adapter: which layers are trained, and how.
            seed: of the adapter's initial weights. The global random state is untouched.
        """
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(causal, adapter)
        self.part = "adapter" if adapter.enable else "model"
        self.causal = cast(PreTrainedModel, self.peft.get_base_model() if adapter.enable else self.peft)
        self.causal.config.use_cache = False

    def _build(self, causal: PreTrainedModel, adapter: LoraSection) -> None:
        """Create everything whose initial weights are random."""
        self.peft = cast(PeftModel, get_peft_model(causal, _lora(adapter)) if adapter.enable else causal)

    def hidden(self, ids: Tensor) -> Tensor:
        """Compute the last hidden states [B, T, D], after the final norm.

        Args:
            ids: token ids [B, T], padded on the right. A causal model needs no attention mask for that.
        """
        decoder = cast(Any, self.causal).get_decoder()
        states: Tensor = decoder(input_ids=ids, use_cache=False).last_hidden_state
        return states

    def logits(self, hidden: Tensor) -> Tensor:
        """Map hidden states [..., D] to logits [..., V]."""
        scores: Tensor = cast(Any, self.causal).get_output_embeddings()(hidden)
        if scores.requires_grad:
            scores.register_hook(_without_tiny)  # type: ignore[no-untyped-call]
        return scores

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Disable the adapter inside the context: the model is then the pinned base."""
        with self.peft.disable_adapter():
            yield

    def adapter_parameters(self) -> list[nn.Parameter]:
        """Return the trained parameters in a fixed order."""
        return [value for _, value in sorted(self.peft.named_parameters()) if value.requires_grad]

    def adapter_state(self) -> dict[str, Tensor]:
        """Return a copy of the adapter's weights by peft's names. Without an adapter: all weights, not copied."""
        weights = self._weights().items()
        return {name: value.detach().clone() if self.part == "adapter" else value.detach() for name, value in weights}

    def load_adapter_state(self, state: Mapping[str, Tensor]) -> None:
        """Load weights that `adapter_state` returned.

        Raises:
            RC1Error: if names or shapes differ.
        """
        mine = {name: tuple(value.shape) for name, value in self._weights().items()}
        theirs = {name: tuple(value.shape) for name, value in state.items()}
        if mine != theirs:
            odd = sorted(set(mine.items()) ^ set(theirs.items()))[:3]
            raise RC1Error(f"the {self.part}'s weights do not fit the model: {odd}; load those of the same model")
        if self.part == "adapter":
            set_peft_model_state_dict(self.peft, dict(state))
        else:
            self.causal.load_state_dict(state, strict=False)  # named_parameters lists tied weights once

    def _weights(self) -> dict[str, Tensor]:
        if self.part == "model":
            return dict(self.causal.named_parameters())
        # By default peft asks the hub about the base, and adds the head's own weights to those of its adapter.
        state: dict[str, Tensor] = get_peft_model_state_dict(self.peft, save_embedding_layers=False)
        return state


class ValueHead(nn.Module):
    """Two layers. The second starts at zero, so the first values are 0 and do not disturb the policy."""

    def __init__(self, hidden_size: int) -> None:
        """Create a head for hidden states of this size."""
        super().__init__()
        self.inner = nn.Linear(hidden_size, hidden_size)
        self.outer = nn.Linear(hidden_size, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Compute values (...) of hidden states (..., D), in the head's own precision."""
        # In half precision, values and returns would be rounded by more than advantages differ.
        with torch.autocast(hidden.device.type, enabled=False):
            inner = nn.functional.silu(self.inner(hidden.to(self.inner.weight.dtype)))
            values: Tensor = self.outer(inner).squeeze(-1)
        return values


class ValuedPolicy(Policy):
    """A policy with a value head, whose values are 0 at first.

    Attributes:
        value_head: hidden states [..., D] to values [...].
    """

    value_head: ValueHead

    def _build(self, causal: PreTrainedModel, adapter: LoraSection) -> None:
        super()._build(causal, adapter)
        self.value_head = ValueHead(causal.config.get_text_config().hidden_size)
        to_device(self.value_head, next(causal.parameters()).device)


def _lora(adapter: LoraSection) -> LoraConfig:
    """Build peft's configuration of the adapter."""
    return LoraConfig(
        r=adapter.r,
        lora_alpha=adapter.alpha,
        lora_dropout=adapter.dropout,
        target_modules=list(adapter.target_modules),
        task_type="CAUSAL_LM",
    )
