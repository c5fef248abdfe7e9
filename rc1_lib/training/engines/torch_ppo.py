"""PPO on a causal model with an adapter: the engine `torch_ppo`, which `trl_ppo` is another name for.

It runs the embedded model on two CPU cores and Qwen3-4B with QLoRA on a GPU by the same code: only the base, its
precision and its quantisation differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

import torch
from torch import Tensor
from torch.optim import AdamW

from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
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
from rc1_lib.training.ranks.crew import Crew
from rc1_lib.training.ranks.processes import processes_of
from rc1_lib.training.ranks.shards import Link, Shards
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.spans import Timing, start_timing, stop_timing
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
    _crew: Crew | None = None

    def setup(self, setup: EpisodeSetup) -> None:
        """Build everything, in every process that shares the work.

        Raises:
            RC1Error: when the base cannot be had or a setting is refused.
        """
        self.close()
        size = processes_of(setup.config.training)
        if size == 1:
            self._build(setup, Shards(setup.config.training.shards))
            return
        self._crew = Crew.take(size)
        with self._crew.beginning(f"{__name__}:{type(self).__name__}", setup):
            self._build(setup, Shards(setup.config.training.shards, self._crew.link))

    @classmethod
    def following(cls, link: Link, setup: EpisodeSetup) -> Self:
        """The engine of another process that shares the work of one that was set up by `setup`."""
        engine = cls()
        engine._build(setup, Shards(setup.config.training.shards, link))
        return engine

    def close(self) -> None:
        """Let the processes go that shared the work."""
        crew, self._crew = self._crew, None
        if crew is not None and crew.whole:
            crew.give_back()

    def _build(self, setup: EpisodeSetup, shards: Shards) -> None:
        config, training, ppo = setup.config, setup.config.training, setup.config.training.ppo
        self.seed, self.temperature, self._shards = setup.seed, training.rollout.temperature, shards
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

    def play(
        self,
        rows: Sequence[MeasuredRow],
        keys: Sequence[str],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        keep_states: bool = False,
    ) -> list[Trajectory]:
        """Play every row once, each shard as a batch of its own."""
        played: list[Trajectory] = self._together("_play", rows, keys, temperature, seed, iteration, keep_states)
        return played

    def _play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], temperature: float, seed: int, iteration: int,
        keep_states: bool,
    ) -> list[Trajectory]:  # fmt: skip
        return self.playground.play(
            self.policy.causal, rows, keys,
            temperature=temperature, seed=seed, iteration=iteration, keep_states=keep_states, shards=self._shards,
        )  # fmt: skip

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights of the adapter from now on."""
        self._together("_load_adapter", dict(adapter))

    def _load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        self.policy.load_adapter_state(adapter)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One PPO update from the batch's `trajectories` and `scores`; `step` counts the finished ones."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        metrics = self._together("_learn", self._collated(batch), self._kl.coef, batch["step"], rates)
        self._kl.update(metrics["objective/kl_per_token"])
        return {**metrics, "lr": rates[0], "lr/value": rates[1]}

    def _learn(self, batch: PPOBatch, kl_coef: float, iteration: int, rates: Sequence[float]) -> dict[str, float]:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        with self._autocast():
            return ppo_update(
                self.policy,
                batch,
                self.optimizer,
                self._settings,
                kl_coef=kl_coef,
                iteration=iteration,
                generator=self._dealer,
                scaler=self._scaler,
                shards=self._shards,
            )

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
        self._together("_load", dict(state))

    def _load(self, state: Mapping[str, Any]) -> None:
        self.policy.load_adapter_state(state["adapter"])
        self.policy.value_head.load_state_dict(state["value_head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._kl.load_state_dict(state["kl"])
        self._dealer.set_state(state["dealer"]["state"])
        if self._scaler is not None:
            self._scaler.load_state_dict(state["scaler"])

    def start_timing(self) -> None:
        """Keep the time of every part of what follows, in every process."""
        self._together("_start_timing")

    def _start_timing(self) -> None:
        start_timing()

    def timings(self) -> list[list[Timing]]:
        """What was kept since, the first process's first."""
        kept: list[list[Timing]] = self._together("_timings")
        return kept

    def _timings(self) -> list[list[Timing]]:
        kept, mine = stop_timing(), self._shards.mine
        found = self._shards.exchange({shard: kept if shard == mine[0] else [] for shard in mine})
        return [part for part in found if part]

    def _together(self, name: str, *arguments: Any) -> Any:
        """What the method `name` comes to, while every process that shares the work does the same."""
        assert self._crew is not None or self._shards.alone, "the engine was closed, and the others wait for its words"
        with nullcontext() if self._crew is None else self._crew.doing(name, arguments):
            return getattr(self, name)(*arguments)

    def _collated(self, batch: Mapping[str, Any]) -> PPOBatch:
        return collate(batch["trajectories"], batch["scores"], self.playground.form.pad_id).to(self.device)

    def _autocast(self) -> torch.autocast:
        half = self.precision is not Precision.FP32
        return torch.autocast(self.device.type, dtype=self.precision.dtype, enabled=half)
