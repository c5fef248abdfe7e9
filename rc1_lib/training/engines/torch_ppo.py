"""PPO on a causal model with an adapter: the engine `torch_ppo`, which `trl_ppo` is another name for.

It runs the embedded model on two CPU cores and Qwen3-4B with QLoRA on a GPU by the same code: only the base, its
precision and its quantisation differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import PreTrainedModel

from rc1_lib.errors import RC1Error
from rc1_lib.training.api import Engine
from rc1_lib.training.base_model import load_base, load_tokenizer
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.device import Precision, get_device, get_precision, wanted_precision
from rc1_lib.training.models import model_section
from rc1_lib.training.play import Playground
from rc1_lib.training.player import Player
from rc1_lib.training.policy import Policy
from rc1_lib.training.ppo.batch import PPOBatch, collate
from rc1_lib.training.ppo.kl_control import AdaptiveKL, FixedKL
from rc1_lib.training.ppo.metrics import objective_metrics
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.targets import targets_of
from rc1_lib.training.ppo.update import ppo_update
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.tool_schemas import TOOLS


class TorchPPO(Engine[EpisodeSetup], Player):
    """The engine `torch_ppo`.

    Attributes:
        policy: what learns.
        optimizer: AdamW over the adapter and the value head, each with its own rate.
        playground: plays rows with the policy.
        seed: of the run; it decides the adapter's first weights, the minibatches and what is sampled.
        temperature: that episodes are sampled at.
    """

    takes = EpisodeSetup
    policy: Policy
    optimizer: AdamW
    playground: Playground
    seed: int
    temperature: float

    def setup(self, setup: EpisodeSetup) -> None:
        """Build everything.

        Raises:
            RC1Error: when the base cannot be had or a setting is refused.
        """
        config, training, ppo = setup.config, setup.config.training, setup.config.training.ppo
        self.seed, self.temperature = setup.seed, training.rollout.temperature
        self.device = get_device()
        if self.device.type == "cpu":
            torch.set_num_threads(training.threads)
        self.precision = get_precision(self.device, wanted_precision(self.device))
        section = model_section(config, setup.base)
        form = ChatFormat(load_tokenizer(section), TOOLS if training.describe_tools else ())
        self.policy = Policy(load_base(section, self.device, self.precision), section.lora, self.seed)
        self.policy.train(False)  # nothing random may be active between sampling and update
        self.playground = Playground(config, form)
        self.optimizer = AdamW(
            [
                {"params": self.policy.adapter_parameters(), "lr": config.lr},
                {"params": list(self.policy.value_head.parameters()), "lr": ppo.value_lr},
            ],
            weight_decay=0.0,
        )
        self._settings = PPOSettings(ppo, config.clip, self.temperature)
        self._kl: FixedKL = FixedKL(config.kl_coef)
        if ppo.adaptive_kl and config.kl_coef > 0:
            self._kl = AdaptiveKL(config.kl_coef, target=config.target_kl, gain=ppo.kl_gain, bound=ppo.kl_bound)
        self._dealer = torch.Generator().manual_seed(self.seed)
        self._scaler = torch.amp.GradScaler(self.device.type) if self.precision is Precision.FP16 else None

    @property
    def causal(self) -> PreTrainedModel:
        """The model that is sampled from."""
        return self.policy.causal

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights of the adapter from now on."""
        self.policy.load_adapter_state(adapter)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One PPO update from the batch's `trajectories` and `scores`; `step` counts the finished ones."""
        rates = {"lr": self.optimizer.param_groups[0]["lr"], "lr/value": self.optimizer.param_groups[1]["lr"]}
        with self._autocast():
            metrics = ppo_update(
                self.policy,
                self._collated(batch),
                self.optimizer,
                self._settings,
                kl_coef=self._kl.coef,
                iteration=batch["step"],
                generator=self._dealer,
                scaler=self._scaler,
            )
        self._kl.update(metrics["objective/kl_per_token"])
        return {**metrics, **rates}

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """What the batch's episodes were like, without learning from them."""
        collated = self._collated(batch)
        with self._autocast():
            targets = targets_of(self.policy, collated, self._settings, self._kl.coef)
        return {**objective_metrics(collated, targets, self._kl.coef), "tokens": float(collated.own_tokens)}

    def state_dict(self) -> dict[str, Any]:
        """`adapter`, `value_head`, `optimizer`, `kl`, `dealer`, and under fp16 the loss `scaler`."""
        state: dict[str, Any] = {
            "adapter": self.policy.adapter_state(),
            "value_head": {name: value.detach().clone() for name, value in self.policy.value_head.state_dict().items()},
            "optimizer": self.optimizer.state_dict(),
            "kl": self._kl.state_dict(),
            "dealer": {"state": self._dealer.get_state(), "seed": self.seed},
        }
        return state if self._scaler is None else {**state, "scaler": self._scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave.

        Raises:
            RC1Error: when it is of another seed or another adapter.
        """
        if state["dealer"]["seed"] != self.seed:
            raise RC1Error(
                f"the checkpoint is of seed {state['dealer']['seed']}, this run of {self.seed}; give its seed"
            )
        self.policy.load_adapter_state(state["adapter"])
        self.policy.value_head.load_state_dict(state["value_head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._kl.load_state_dict(state["kl"])
        self._dealer.set_state(state["dealer"]["state"])
        if self._scaler is not None:
            self._scaler.load_state_dict(state["scaler"])

    def _collated(self, batch: Mapping[str, Any]) -> PPOBatch:
        return collate(batch["trajectories"], batch["scores"], self.playground.form.pad_id).to(self.device)

    def _autocast(self) -> torch.autocast:
        half = self.precision is not Precision.FP32
        return torch.autocast(self.device.type, dtype=self.precision.dtype, enabled=half)
