"""The policy: a causal model and its LoRA adapter in one module, and a value head where an algorithm has use for one.

The reference policy is the same model with the adapter switched off, so that no second copy stays in memory. Rows of a
file may also train all weights, without an adapter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor, nn
from transformers import PreTrainedModel

from rc1_lib.errors import RC1Error
from rc1_lib.training.device import to_device
from rc1_lib.training.train_config import LoraSection


class Policy(nn.Module):
    """A causal model with an adapter, or one whose weights are all trained.

    Nothing random may be active in it while it learns from episodes (dropout), or ratios compare two draws instead of
    two policies.

    Attributes:
        causal: the transformers model; its linear layers are wrapped by peft.
        peft: the model with its adapter; without one it is `causal`.
        part: what an engine's state calls the trained weights: `adapter` or `model`.
    """

    peft: PeftModel

    def __init__(self, causal: PreTrainedModel, adapter: LoraSection, seed: int) -> None:
        """Freezes the model and gives it a fresh adapter, which changes nothing yet; if it is enabled.

        Args:
            causal: the base model.
            adapter: what is trained of it.
            seed: of the adapter's first weights; no other randomness is touched.
        """
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._begin(causal, adapter)
        self.part = "adapter" if adapter.enable else "model"
        self.causal = cast(PreTrainedModel, self.peft.get_base_model() if adapter.enable else self.peft)
        self.causal.config.use_cache = False

    def _begin(self, causal: PreTrainedModel, adapter: LoraSection) -> None:
        """Make all whose first weights are random."""
        self.peft = cast(PeftModel, get_peft_model(causal, _lora(adapter)) if adapter.enable else causal)

    def hidden(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Last hidden states after the final norm.

        Args:
            ids: token ids [B, T], padded on the right.
            mask: True where a token is real [B, T]. A causal model needs none where the padding is on the right.

        Returns:
            [B, T, D].
        """
        decoder = cast(Any, self.causal).get_decoder()
        states: Tensor = decoder(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        return states

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., D] to logits [..., V]."""
        scores: Tensor = cast(Any, self.causal).get_output_embeddings()(hidden)
        return scores

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Inside, the adapter is switched off: the model is the pinned base."""
        with self.peft.disable_adapter():
            yield

    def adapter_parameters(self) -> list[nn.Parameter]:
        """What is trained of the model, in a fixed order."""
        return [value for _, value in sorted(self.peft.named_parameters()) if value.requires_grad]

    def adapter_state(self) -> dict[str, Tensor]:
        """A copy of the adapter's weights by peft's names; without one all of the model's, which are not copied."""
        weights = self._weights().items()
        return {name: value.detach().clone() if self.part == "adapter" else value.detach() for name, value in weights}

    def load_adapter_state(self, state: Mapping[str, Tensor]) -> None:
        """Put weights of `adapter_state` back.

        Raises:
            RC1Error: when they are those of another adapter.
        """
        mine = {name: tuple(value.shape) for name, value in self._weights().items()}
        theirs = {name: tuple(value.shape) for name, value in state.items()}
        if mine != theirs:
            odd = sorted(set(mine.items()) ^ set(theirs.items()))[:3]
            raise RC1Error(f"the {self.part}'s weights do not fit the model: {odd}; take the run that wrote them")
        if self.part == "adapter":
            set_peft_model_state_dict(self.peft, dict(state))
        else:
            self.causal.load_state_dict(state, strict=False)  # tied weights are there once

    def _weights(self) -> dict[str, Tensor]:
        return get_peft_model_state_dict(self.peft) if self.part == "adapter" else dict(self.causal.named_parameters())


class ValueHead(nn.Module):
    """Two layers; the second starts at zero, so that the first values are 0 and disturb nothing."""

    def __init__(self, hidden_size: int) -> None:
        """For hidden states of this size."""
        super().__init__()
        self.inner = nn.Linear(hidden_size, hidden_size)
        self.outer = nn.Linear(hidden_size, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Values (...) of hidden states (..., D), in the head's own precision whatever the model runs in."""
        # Half precision would round values and returns by more than advantages differ.
        with torch.autocast(hidden.device.type, enabled=False):
            inner = nn.functional.silu(self.inner(hidden.to(self.inner.weight.dtype)))
            values: Tensor = self.outer(inner).squeeze(-1)
        return values


class ValuedPolicy(Policy):
    """A policy with a value head, which says 0 at first.

    Attributes:
        value_head: hidden states [..., D] to values [...].
    """

    value_head: ValueHead

    def _begin(self, causal: PreTrainedModel, adapter: LoraSection) -> None:
        super()._begin(causal, adapter)
        self.value_head = ValueHead(causal.config.get_text_config().hidden_size)
        to_device(self.value_head, next(causal.parameters()).device)


def _lora(adapter: LoraSection) -> LoraConfig:
    """LoRA on the layers that the section names."""
    return LoraConfig(
        r=adapter.r,
        lora_alpha=adapter.alpha,
        lora_dropout=adapter.dropout,
        target_modules=list(adapter.target_modules),
        task_type="CAUSAL_LM",
    )
