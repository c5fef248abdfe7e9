"""What engines share, whatever they learn from: the policy, playing, processes, the state.

They run the embedded model on two CPU cores and Qwen3-4B with QLoRA on a GPU by the same code: only the base, its
precision and its quantisation differ.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar

import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import PreTrainedModel

from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.training.api import Engine
from rc1_lib.training.base_model import base_config, load_base, load_tokenizer, recompute_states
from rc1_lib.training.chat_format import format_of
from rc1_lib.training.device import Precision, get_device, precision_of, to_device
from rc1_lib.training.play import Playground
from rc1_lib.training.player import Player
from rc1_lib.training.policy import Policy
from rc1_lib.training.ranks.group import Link, WorkerGroup
from rc1_lib.training.ranks.processes import group_of, on_one_device, processes_of
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.rollout.decoding import context_of, longest_dialogue
from rc1_lib.training.rollout.sampling_weights import copy_to_sample_with
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.setups import Setup
from rc1_lib.training.spans import Part, Timing, span, start_timing, stop_timing
from rc1_lib.training.updates.logprobs import token_logprobs
from rc1_lib.training.usable import check_memory, check_usable

if TYPE_CHECKING:
    from rc1_lib.extras.vllm.sampler import VLLMSampler

P = ParamSpec("P")
Result = TypeVar("Result")


class PlayingEngine(Engine, Player):
    """An engine whose policy can play episodes in a run; from what and how it learns is the subclass's.

    One that learns from rows of a file has no `playground` and no `temperature`, and cannot play.

    Attributes:
        policy: what learns.
        optimizer: AdamW over the adapter, and over what else the subclass trains, each with its own rate.
        playground: plays rows with the policy.
        seed: of the run; it decides the adapter's first weights, the minibatches and what is sampled.
        temperature: that episodes are sampled at.
        needs_states: whether it learns from the hidden states that tokens were sampled from.
        plays_start: whether it learns from episodes of the policy that it started from, not from those of its own.
    """

    policy: Policy
    optimizer: AdamW
    playground: Playground
    seed: int
    temperature: float
    needs_states: ClassVar[bool] = False
    plays_start: ClassVar[bool] = False
    _workers: WorkerGroup | None = None
    _server: VLLMSampler | None = None

    @abstractmethod
    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        """Make `policy` and `optimizer`, whose first group is the adapter's, and whatever else learning needs."""
        ...

    def setup(self, setup: Setup) -> None:
        """Build everything, in every process that shares the work.

        Raises:
            RC1Error: when the base cannot be had, a setting is refused, or the policy does not fit into memory.
        """
        self.close()
        device, shape = get_device(setup.devices), base_config(setup.model)
        if setup.run is None:
            check_memory(setup, shape, device, 1)
            self._build(setup, ONE)
            return
        training = setup.run.training
        size = processes_of(training)
        check_usable(setup.run, shape, device)
        check_memory(setup, shape, device, on_one_device(size))
        if size == 1:
            self._build(setup, Shards(training.shards))
            return
        self._workers = group_of(size)
        with self._workers.constructing(type(self).as_worker, setup):
            self._build(setup, Shards(training.shards, self._workers.link))

    @classmethod
    def as_worker(cls, link: Link, setup: Setup) -> Self:
        """The engine of another process that shares the work of one that was set up by `setup`."""
        engine = cls()
        engine._build(setup, Shards(setup.config.training.shards, link))
        return engine

    def close(self) -> None:
        """Let the processes go that shared the work, and the server that sampled forget the adapter."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        group, self._workers = self._workers, None
        if group is not None and group.whole:
            group.release()

    def _build(self, setup: Setup, shards: Shards) -> None:
        self.seed, self._shards, self._section = setup.seed, shards, setup.update
        self.device = get_device(setup.devices)
        self.precision = precision_of(self.device, setup.precision)
        self.tokenizer = load_tokenizer(setup.model)
        if setup.run is not None:
            self._prepare_to_play(setup.run)
        base = load_base(setup.model, self.device, self.precision)
        if setup.model.gradient_checkpointing:
            recompute_states(base)
        self._begin(setup, base)
        # Nothing random may be active between sampling and update; transformers checkpoints in training mode alone.
        self.policy.train(setup.run is None or setup.model.gradient_checkpointing)
        self._copy = None
        if setup.run is not None and self._training.rollout.sampler == "own":
            self._copy = copy_to_sample_with(self.policy.causal, self._training.rollout.sampling_copy)
        self._dealer = torch.Generator().manual_seed(self.seed)
        self._scaler = torch.amp.GradScaler(self.device.type) if self.precision is Precision.FP16 else None

    def _prepare_to_play(self, config: RunConfig) -> None:
        self._training = config.training
        if self.device.type == "cpu":
            torch.set_num_threads(config.training.threads)
        self.temperature = config.training.rollout.temperature
        self.playground = Playground(config, format_of(self.tokenizer, config.training))

    def _train_adapter(self, base: PreTrainedModel, setup: Setup) -> None:
        """The policy of an engine without values, and an optimizer of what is trained of it."""
        self.policy = Policy(base, setup.model.lora, self.seed)
        self.optimizer = AdamW(self.policy.adapter_parameters(), lr=setup.lr, weight_decay=0.0)

    def play(
        self,
        rows: Sequence[MeasuredRow],
        keys: Sequence[str],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        to_learn: bool = False,
    ) -> list[Trajectory]:
        """Play every row once: each shard as a batch of its own, or all of them with the server that samples."""
        keep, start = to_learn and self.needs_states, to_learn and self.plays_start
        if self._training.rollout.sampler == "vllm":
            starts = [self.playground.start(row, key) for row, key in zip(rows, keys, strict=True)]
            sampling = self.playground.sampling(temperature, seed, iteration)
            with span(Part.DECODE):
                said = self._sampler().play(self.policy, self.playground.form, starts, sampling, start=start)
            if not to_learn:  # what is learned from is read whole, under the same bounds
                self._sampler().check(said, temperature, start=start)
            return said
        return self._together(self._play, rows, keys, temperature, seed, iteration, keep, start)

    def _play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], temperature: float, seed: int, iteration: int,
        keep_states: bool, start: bool,
    ) -> list[Trajectory]:  # fmt: skip
        with self._playing(start), nullcontext() if self._copy is None else self._copy.standing_in():
            return self.playground.play(
                self.policy.causal, rows, keys,
                temperature=temperature, seed=seed, iteration=iteration, keep_states=keep_states, shards=self._shards,
            )  # fmt: skip

    def _sampler(self) -> VLLMSampler:
        """The server that samples; this process alone asks it, whoever shares the learning."""
        if self._server is None:
            extra = import_module("rc1_lib.extras.vllm.sampler")  # only a run that names it needs it
            training, shape_of_base = self._training, self.policy.causal.config
            vocabulary = shape_of_base.get_text_config().vocab_size
            longest = longest_dialogue(training, shape_of_base)
            shape = extra.Shape(context_of(shape_of_base), longest, vocabulary, training.rollout.rows)
            self._server = extra.VLLMSampler(training.vllm, shape, training.parity, self._read)
        assert self._server is not None
        return self._server

    @torch.no_grad()
    def _read(self, ids_BT: Tensor, chosen_BT: Tensor, temperature: float, start: bool) -> tuple[Tensor, Tensor]:
        """Log-probabilities (N,) of the chosen tokens, row by row, and of the likeliest in their places.

        They are of the policy as it stands, or was started from.
        """
        ids_BT, chosen_BT = to_device((ids_BT, chosen_BT), self.device)
        with self._autocast(), self._playing(start):
            hidden_ND = self.policy.hidden(ids_BT)[:, :-1][chosen_BT[:, 1:]]
            logits_NV = self.policy.logits(hidden_ND)
            return (
                token_logprobs(logits_NV, ids_BT[chosen_BT], temperature),
                token_logprobs(logits_NV, logits_NV.argmax(-1), temperature),
            )

    def _playing(self, start: bool) -> AbstractContextManager[None]:
        """Inside, the policy is the one that plays."""
        return self.policy.reference() if start else nullcontext()

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights of the adapter from now on."""
        self._together(self._load_adapter, dict(adapter))

    def _load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        self.policy.load_adapter_state(adapter)

    def state_dict(self) -> dict[str, Any]:
        """`adapter` (or `model`), `optimizer`, `dealer`, and under fp16 the loss `scaler`."""
        state: dict[str, Any] = {
            self.policy.part: self.policy.adapter_state(),
            "optimizer": self.optimizer.state_dict(),
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
        self._together(self._load, dict(state))

    def _load(self, state: Mapping[str, Any]) -> None:
        self.policy.load_adapter_state(state[self.policy.part])
        self.optimizer.load_state_dict(state["optimizer"])
        self._dealer.set_state(state["dealer"]["state"])
        if self._scaler is not None:
            self._scaler.load_state_dict(state["scaler"])

    def start_timing(self) -> None:
        """Keep the time of every part of what follows, in every process."""
        self._together(self._start_timing)

    def _start_timing(self) -> None:
        start_timing(torch.cuda.synchronize if self.device.type == "cuda" else None)

    def timings(self) -> list[list[Timing]]:
        """What was kept since, the first process's first."""
        return self._together(self._timings)

    def _timings(self) -> list[list[Timing]]:
        kept, mine = stop_timing(), self._shards.mine
        found = self._shards.all_gather({shard: kept if shard == mine[0] else [] for shard in mine})
        return [part for part in found if part]

    @property
    def _rates(self) -> list[float]:
        """The learning rate of every group of the optimizer."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _set_rates(self, rates: Sequence[float]) -> None:
        """Learn with these: whoever follows has not seen what a schedule did to the first process's optimizer."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def _together(self, method: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
        """The result of a method of this engine, which every process that shares the work calls at the same time."""
        assert self._workers is not None or self._shards.alone, "the engine was closed"
        with nullcontext() if self._workers is None else self._workers.calling(method, *arguments, **named):
            return method(*arguments, **named)

    def _autocast(self) -> torch.autocast:
        half = self.precision is not Precision.FP32
        return torch.autocast(self.device.type, dtype=self.precision.dtype, enabled=half)
