"""What engines share, whatever they learn from: the policy, playing, processes, one step, the state.

They run the embedded model on two CPU cores and Qwen3-4B with QLoRA on a GPU by the same code: only the base, its
precision and its quantisation differ.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar

import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import PreTrainedModel

from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.training.api import Engine, Setup
from rc1_lib.training.base_model import base_config, load_base, load_tokenizer, recompute_states
from rc1_lib.training.chat_format import format_of
from rc1_lib.training.device import Precision, get_device, precision_of, to_device
from rc1_lib.training.policy import Policy
from rc1_lib.training.profiler import Section, Timing, start_timing, stop_timing, timed
from rc1_lib.training.ranks.group import Link, WorkerGroup
from rc1_lib.training.ranks.processes import group_of, on_one_device, processes_of
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.rollout.decoder import context_of, longest_dialogue
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.sampling_weights import copy_to_sample_with
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.updates.batch import EpisodeBatch, TokenBatch, collate
from rc1_lib.training.updates.forward import policy_logprobs, reference_logprobs, token_logprobs
from rc1_lib.training.updates.losses import FixedKL, kl_control
from rc1_lib.training.updates.metrics import check_parity, distance, episode_metrics, farther
from rc1_lib.training.usable import check_memory, check_usable

if TYPE_CHECKING:
    from rc1_lib.extras.vllm.sampler import VLLMSampler

P = ParamSpec("P")
Result = TypeVar("Result")


class PolicyEngine(Engine):
    """An engine whose policy plays episodes in a run and learns from them; the algorithm is the subclass's.

    One that learns from demonstrations plays for the evaluation alone; set up for rows of a file it has no `playground`
    and no `temperature`, and cannot play.

    Attributes:
        policy: what learns.
        optimizer: AdamW over the adapter, and over what else the subclass trains, each with its own rate.
        playground: plays rows with the policy, and says what each episode was worth.
        seed: of the run; it decides the adapter's first weights, the minibatches and what is sampled.
        temperature: that episodes are sampled at.
        learns_episodes: whether it learns from episodes: with a price on the KL, and a look at how far sampling and
            learning are apart.
        needs_states: whether it learns from the hidden states that tokens were sampled from.
        plays_start: whether it learns from episodes of the policy that it started from, not from those of its own.
        fixed_kl: whether `kl_coef` stays whatever `training.update.adaptive_kl` says.
    """

    policy: Policy
    optimizer: AdamW
    playground: Playground
    seed: int
    temperature: float
    learns_episodes: ClassVar[bool] = True
    needs_states: ClassVar[bool] = False
    plays_start: ClassVar[bool] = False
    fixed_kl: ClassVar[bool] = False
    _workers: WorkerGroup | None = None
    _server: VLLMSampler | None = None

    @abstractmethod
    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        """Make `policy` and `optimizer`, whose first group is the adapter's, and whatever else learning needs."""
        ...

    @abstractmethod
    def _update(self, batch: Any, kl_coef: float, iteration: int) -> dict[str, float]:
        """Learn from the batch; every process does the same on its shards, and comes to the same bits."""
        ...

    def _look(self, batch: Any, kl_coef: float) -> dict[str, float]:
        """What the batch is like, here episodes; nothing is learned."""
        ref_BT = reference_logprobs(
            self.policy, batch, micro_tokens=self._section.micro_tokens, temperature=self.temperature
        )
        return episode_metrics(batch, ref_BT, kl_coef)

    # Setting up, in every process that shares the work.

    def setup(self, setup: Setup) -> None:
        """Build everything, in every process that shares the work.

        Raises:
            RC1Error: when the base cannot be had, a setting is refused, or the policy does not fit into memory.
        """
        self.close()
        device, shape = get_device(setup.devices), base_config(setup.model)
        size = 1 if setup.run is None else processes_of(setup.run.training)
        if setup.run is not None:
            check_usable(setup.run, shape, device)
        check_memory(setup, shape, device, on_one_device(size))
        if size == 1:
            self._build(setup, None)
            return
        self._workers = group_of(size)
        with self._workers.constructing(type(self).as_worker, setup):
            self._build(setup, self._workers.link)

    @classmethod
    def as_worker(cls, link: Link, setup: Setup) -> Self:
        """The engine of another process that shares the work of one that was set up by `setup`."""
        engine = cls()
        engine._build(setup, link)
        return engine

    def close(self) -> None:
        """Let the processes go that shared the work, and the server that sampled forget the adapter."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        group, self._workers = self._workers, None
        if group is not None and group.whole:
            group.release()

    def _build(self, setup: Setup, link: Link | None) -> None:
        self.seed, self._section, run = setup.seed, setup.update, setup.run
        self._shards = ONE if run is None else Shards(run.training.shards, link)
        self.device = get_device(setup.devices)
        self.precision = precision_of(self.device, setup.precision)
        self.tokenizer = load_tokenizer(setup.model)
        self._kl: FixedKL | None = None
        if run is not None:
            self._training, self.temperature = run.training, run.training.rollout.temperature
            if self.device.type == "cpu":
                torch.set_num_threads(run.training.threads)
            self.playground = Playground(run, format_of(self.tokenizer, run.training))
            if self.learns_episodes:
                self._kl = kl_control(run.kl_coef, run.target_kl, run.training.update, fixed=self.fixed_kl)
        base = load_base(setup.model, self.device, self.precision)
        if setup.model.gradient_checkpointing:
            recompute_states(base)
        self._begin(setup, base)
        # Nothing random may be active between sampling and update; transformers checkpoints in training mode alone.
        self.policy.train(run is None or setup.model.gradient_checkpointing)
        self._copy = None
        if run is not None and run.training.rollout.sampler == "own":
            self._copy = copy_to_sample_with(self.policy.causal, run.training.rollout.sampling_copy)
        self._dealer = torch.Generator().manual_seed(self.seed)
        self._scaler = torch.amp.GradScaler(self.device.type) if self.precision is Precision.FP16 else None

    def _train_adapter(self, base: PreTrainedModel, setup: Setup) -> None:
        """The policy of an engine without values, and an optimizer of what is trained of it."""
        self.policy = Policy(base, setup.model.lora, self.seed)
        self.optimizer = AdamW(self.policy.adapter_parameters(), lr=setup.lr, weight_decay=0.0)

    # Playing.

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
        """Play every row once: each shard as a batch of its own, or all of them with the server that samples.

        Before anything was learned or loaded the base plays.

        Args:
            rows: of the pool's schema.
            keys: name each episode's random numbers.
            temperature: 0 is greedy.
            seed: with `iteration` and the key it decides what is sampled.
            iteration: of the training.
            to_learn: whether the engine learns from these episodes: what it needs for that is kept with them.
        """
        keep, start = to_learn and self.needs_states, to_learn and self.plays_start
        if self._training.rollout.sampler == "vllm":
            starts = [self.playground.start(row, key) for row, key in zip(rows, keys, strict=True)]
            sampling = self.playground.sampling(temperature, seed, iteration)
            with timed(Section.DECODE):
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

        They are of the current policy, or of the one it was started from.
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

    # Learning.

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update; from episodes it learns by the batch's `trajectories` and `scores`.

        Args:
            batch: with `step`, the number of finished ones, where it learns from episodes.

        Raises:
            ParityError: when the tokens were sampled with other probabilities than they are learned with; the engine
                has learned from them then, and is of no more use.
        """
        rates, step, kl = self._rates, batch.get("step", 0), self._kl
        metrics = self._together(self._learn, self._collated(batch), 0.0 if kl is None else kl.coef, step, rates)
        if kl is not None:
            check_parity(metrics, self._training.parity, step)
            kl.update(metrics["objective/kl_per_token"])
        return {**metrics, "lr": rates[0]}

    def _learn(self, batch: TokenBatch, kl_coef: float, iteration: int, rates: Sequence[float]) -> dict[str, float]:
        # Whoever follows has not seen what a schedule did to the first process's optimizer.
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        with self._autocast():
            if not isinstance(batch, EpisodeBatch) or (self._copy is None and self._training.rollout.sampler == "own"):
                return self._update(batch, kl_coef, iteration)
            read, apart = self._read_again(batch)
            metrics = self._update(read, kl_coef, iteration)
            return metrics | farther(apart, metrics)

    def _read_again(self, batch: EpisodeBatch) -> tuple[EpisodeBatch, dict[str, float]]:
        """A batch that a copy or a server sampled, with the policy's own log-probabilities, and how far apart both are.

        Otherwise the first ratios of the update would hold what they round.
        """
        with self._playing(self.plays_start):
            read_BT = policy_logprobs(
                self.policy, batch, range(len(batch)),
                micro_tokens=self._section.micro_tokens, temperature=self.temperature, shards=self._shards,
            )  # fmt: skip
        mask = batch.action_mask
        return replace(batch, old_logprobs=read_BT), distance(batch.old_logprobs[mask], read_BT[mask])

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """What the batch is like, without learning from it, and `tokens`, how many of it would be learned."""
        collated = self._collated(batch)
        with self._autocast():
            found = self._look(collated, 0.0 if self._kl is None else self._kl.coef)
        return {**found, "tokens": float(collated.action_count)}

    def _collated(self, batch: Mapping[str, Any]) -> TokenBatch:
        return collate(batch["trajectories"], batch["scores"], self.playground.form.pad_id).on(self.device)

    @property
    def _rates(self) -> list[float]:
        """The learning rate of every group of the optimizer."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _autocast(self) -> torch.autocast:
        half = self.precision is not Precision.FP32
        return torch.autocast(self.device.type, dtype=self.precision.dtype, enabled=half)

    # The state.

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on: the part `adapter` of the engine's state, out of a checkpoint.

        Raises:
            RC1Error: when it does not fit the model.
        """
        self._together(self._load_adapter, dict(adapter))

    def _load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        self.policy.load_adapter_state(adapter)

    def state_dict(self) -> dict[str, Any]:
        """`adapter` (or `model`), `optimizer`, `dealer`; in fp16 `scaler`; `kl` if it learns from episodes."""
        state: dict[str, Any] = {
            self.policy.part: self.policy.adapter_state(),
            "optimizer": self.optimizer.state_dict(),
            "dealer": {"state": self._dealer.get_state(), "seed": self.seed},
        }
        if self._scaler is not None:
            state["scaler"] = self._scaler.state_dict()
        return state if self._kl is None else {**state, "kl": self._kl.state_dict()}

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
        if self._kl is not None:
            self._kl.load_state_dict(state["kl"])

    # Time, and the processes.

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

    def _together(self, method: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
        """The result of a method of this engine, which every process that shares the work calls at the same time."""
        assert self._workers is not None or self._shards.alone, "the engine was closed"
        with nullcontext() if self._workers is None else self._workers.calling(method, *arguments, **named):
            return method(*arguments, **named)
