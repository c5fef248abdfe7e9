"""Base class of all engines: policy, rollouts, worker processes, one training step, and the engine's state.

The same code runs the bundled tiny model on two CPU cores and Qwen3-4B with QLoRA on a GPU. Only the base, its
precision and its quantisation differ.
"""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import PreTrainedModel

from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.training.api import Engine, Setup, make_engine
from rc1_lib.training.base_model import base_config, enable_gradient_checkpointing, load_base, load_tokenizer
from rc1_lib.training.chat_format import format_of
from rc1_lib.training.device import Precision, get_device, precision_of, to_device
from rc1_lib.training.policy import Policy
from rc1_lib.training.profiler import Section, Timing, start_timing, stop_timing, timed
from rc1_lib.training.ranks.group import Group, group_of
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards, on_one_device, processes_of
from rc1_lib.training.rollout.asking import Asking
from rc1_lib.training.rollout.decoder import context_of, longest_dialogue
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.updates.batch import EpisodeBatch, TokenBatch, batch_of, collate
from rc1_lib.training.updates.forward import policy_logprobs, reference_logprobs, token_logprobs
from rc1_lib.training.updates.losses import FixedKL, kl_control
from rc1_lib.training.updates.metrics import check_parity, distance, episode_metrics, larger_distance
from rc1_lib.training.usable import check_logits, check_memory, check_usable

if TYPE_CHECKING:
    from rc1_lib.training.vllm.sampler import VLLMSampler

Result = TypeVar("Result")


class PolicyEngine(Engine):
    """An engine whose policy plays episodes and learns from them. Subclasses add the algorithm.

    An engine that learns from demonstrations plays episodes only for the evaluation. Set up for rows of a file
    (`setup.run` is None), it has no `playground` and no `temperature`, and cannot play.

    Attributes:
        policy: the model to train.
        optimizer: AdamW over the adapter and whatever else the subclass trains. Each parameter group has its own rate.
        playground: plays rows with the policy and scores each episode.
        seed: of the run. It decides the adapter's first weights, the minibatches and the sampled tokens.
        temperature: sampling temperature of training episodes.
        learns_episodes: whether it learns from episodes. If so, it has a KL coefficient and checks the parity between
            sampling and training log-probabilities.
        needs_states: whether it learns from the hidden states from which tokens were sampled.
        plays_start: whether it learns from episodes of the initial policy instead of its own.
        fixed_kl: whether `kl_coef` stays constant, whatever the KL.
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
    _group: Group | None = None
    _server: VLLMSampler | None = None

    @abstractmethod
    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        """Create `policy` and `optimizer` and whatever else the algorithm needs. Group 0 is the adapter's."""
        ...

    @abstractmethod
    def _update(self, batch: Any, kl_coef: float, iteration: int) -> dict[str, float]:
        """Learn from the batch. Every process calls this with its own shards and ends with the same bits."""
        ...

    def _evaluate(self, batch: Any, kl_coef: float) -> dict[str, float]:
        """Return metrics of a batch (here of episodes) without learning from it."""
        ref_BT = reference_logprobs(
            self.policy, batch, micro_tokens=self._section.micro_tokens, temperature=self.temperature
        )
        return episode_metrics(batch, ref_BT, kl_coef)

    # Setup, in every worker process.

    def setup(self, setup: Setup) -> None:
        """Build model, optimizer and playground in every worker process.

        Raises:
            RC1Error: if the base cannot be loaded, a setting is rejected, or the policy does not fit into memory.
        """
        self.close()
        device, shape = get_device(setup.devices), base_config(setup.model)
        size = 1 if setup.run is None else processes_of(setup.run.training)
        if setup.run is None:
            check_logits(shape)
        else:
            check_usable(setup.run, shape)
        check_memory(setup, shape, device, on_one_device(size))
        if size == 1:
            self._build(setup, None)
            return
        self._group = group_of(size, follow)
        self._group.led = self
        with self._group.calling(_SETUP, setup.config.model_dump_json(), setup.model.base, setup.seed):
            self._build(setup, self._group)
            self._group.all_gather({})  # whoever cannot build its engine is found here

    def close(self) -> None:
        """Leave the worker processes to the next engine, and unload the adapter from the sampling server."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        group, self._group = self._group, None
        if group is not None and group.led is self:
            group.led = None

    def _build(self, setup: Setup, group: Group | None) -> None:
        self.seed, self._section, run = setup.seed, setup.update, setup.run
        self._shards = ONE_SHARD if run is None else Shards(run.training.shards, group)
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
                self._kl = kl_control(run.kl_coef, run.target_kl, fixed=self.fixed_kl)
        base = load_base(setup.model, self.device, self.precision)
        if setup.model.gradient_checkpointing:
            enable_gradient_checkpointing(base)
        self._create_policy(setup, base)
        # Only gradient checkpointing needs training mode: no dropout may be active between sampling and update.
        self.policy.train(run is None or setup.model.gradient_checkpointing)
        self._minibatch_rng = torch.Generator().manual_seed(self.seed)
        self._scaler = torch.amp.GradScaler(self.device.type) if self.precision is Precision.FP16 else None

    def _train_adapter(self, base: PreTrainedModel, setup: Setup) -> None:
        """Create a policy without a value head, and an optimizer over its trained weights."""
        self.policy = Policy(base, setup.model.lora, self.seed)
        self.optimizer = AdamW(self.policy.adapter_parameters(), lr=setup.lr, weight_decay=0.0)

    # Rollouts.

    def play(
        self,
        rows: Sequence[MeasuredRow],
        keys: Sequence[str],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        to_learn: bool = False,
        asking: Sequence[Asking] | None = None,
        shown: Sequence[int] = (),
    ) -> list[Trajectory]:
        """Play every row once: shard by shard with the policy itself, or all together on the sampling server.

        Before anything was learned or loaded, the policy equals the base model.

        Args:
            keys: one name per episode, which seeds its random numbers.
            temperature: 0 means greedy.
            seed: decides the sampled tokens, together with `iteration` and the key.
            iteration: training step.
            to_learn: whether the engine will learn from these episodes, so that the trajectories must keep what it
                needs.
            asking: who decides in each episode whether it asks; None: the policy in all. Only RC1's own sampler can do
                otherwise.
            shown: tokens of dialogues that every prompt shows as examples; only with RC1's own sampler, too.
        """
        keep, start = to_learn and self.needs_states, to_learn and self.plays_start
        if self._training.rollout.sampler == "vllm":
            assert asking is None and not shown, "a sampling server plays only what training plays"
            starts = [self.playground.start(row, key) for row, key in zip(rows, keys, strict=True)]
            sampling = self.playground.sampling(temperature, seed, iteration)
            with timed(Section.DECODE):
                played = self._sampler().play(self.policy, self.playground.form, starts, sampling, start=start)
            if not to_learn:  # a training step recomputes all log-probabilities and checks them itself
                self._sampler().check(played, temperature, start=start)
            return played
        return self._on_all_processes(self._play, rows, keys, temperature, seed, iteration, keep, start, asking, shown)

    def _play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], temperature: float, seed: int, iteration: int,
        keep_states: bool, start: bool, asking: Sequence[Asking] | None, shown: Sequence[int],
    ) -> list[Trajectory]:  # fmt: skip
        with self._playing(start):
            return self.playground.play(
                self.policy.causal, rows, keys,
                temperature=temperature, seed=seed, iteration=iteration, keep_states=keep_states, shards=self._shards,
                asking=asking, shown=shown,
            )  # fmt: skip

    def _sampler(self) -> VLLMSampler:
        """Return the client of the sampling server. Only the first process talks to the server."""
        if self._server is None:
            # OpenAI's client is slow to import, and few runs need it.
            from rc1_lib.training.vllm.sampler import Shape, VLLMSampler

            training, shape_of_base = self._training, self.policy.causal.config
            vocabulary = shape_of_base.get_text_config().vocab_size
            longest = longest_dialogue(training, shape_of_base)
            shape = Shape(context_of(shape_of_base), longest, vocabulary, training.rollout.rows)
            self._server = VLLMSampler(training.vllm, shape, training.parity, self._read)
        assert self._server is not None
        return self._server

    @torch.no_grad()
    def _read(self, ids_BT: Tensor, chosen_BT: Tensor, temperature: float, start: bool) -> tuple[Tensor, Tensor]:
        """Compute log-probabilities (N,) of the chosen tokens, row by row, and of the most likely token at each place.

        They come from the current policy, or with `start` from the initial one.
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
        """Return a context in which the policy is the one that plays: the current or, with `start`, the initial one."""
        return self.policy.reference() if start else nullcontext()

    # Training.

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Do one update. An engine that learns from episodes reads `trajectories` and `scores` from the batch.

        Args:
            batch: also with `step`, the number of finished steps, if the engine learns from episodes.

        Raises:
            ParityError: if sampling and training log-probabilities differ too much. The engine has already learned from
                the batch and must not be used any more.
        """
        rates, step, kl = self._rates, batch.get("step", 0), self._kl
        metrics = self._on_all_processes(
            self._learn, self._collated(batch).parts(), 0.0 if kl is None else kl.coef, step, rates
        )
        if kl is not None:
            check_parity(metrics, self._training.parity, step)
            kl.update(metrics["objective/kl_per_token"])
        return {**metrics, "lr": rates[0]}

    def _learn(
        self, parts: Mapping[str, Tensor | None], kl_coef: float, iteration: int, rates: Sequence[float]
    ) -> dict[str, float]:
        batch = batch_of(parts)
        # Workers have not seen the learning rates that a schedule set in the first process.
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        with self._autocast():
            if not isinstance(batch, EpisodeBatch) or self._training.rollout.sampler == "own":
                return self._update(batch, kl_coef, iteration)
            read, apart = self._recompute_logprobs(batch)
            metrics = self._update(read, kl_coef, iteration)
            return metrics | larger_distance(apart, metrics)

    def _recompute_logprobs(self, batch: EpisodeBatch) -> tuple[EpisodeBatch, dict[str, float]]:
        """Recompute the log-probabilities of a batch that a server sampled, and measure the difference.

        With the sampled ones, the first ratios of the update would contain the server's rounding.
        """
        with self._playing(self.plays_start):
            read_BT = policy_logprobs(
                self.policy, batch, range(len(batch)),
                micro_tokens=self._section.micro_tokens, temperature=self.temperature, shards=self._shards,
            )  # fmt: skip
        mask = batch.action_mask
        return replace(batch, old_logprobs=read_BT), distance(batch.old_logprobs[mask], read_BT[mask])

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Return metrics of a batch without learning from it, and `tokens`, the number of its trained tokens."""
        collated = self._collated(batch)
        with self._autocast():
            found = self._evaluate(collated, 0.0 if self._kl is None else self._kl.coef)
        return {**found, "tokens": float(collated.action_count)}

    def _collated(self, batch: Mapping[str, Any]) -> TokenBatch:
        pad_id = self.playground.form.pad_id
        return collate(batch["trajectories"], batch["scores"], pad_id, kinds=batch.get("kinds")).on(self.device)

    @property
    def _rates(self) -> list[float]:
        """Learning rate of each parameter group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _autocast(self) -> torch.autocast:
        half = self.precision is not Precision.FP32
        # Without its cache, which would keep the adapter of an update's first step for all steps after it.
        return torch.autocast(self.device.type, dtype=self.precision.dtype, enabled=half, cache_enabled=False)

    # State.

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on.

        Args:
            adapter: the part `adapter` of an engine's state, as checkpoints hold it.

        Raises:
            RC1Error: if it does not fit the model.
        """
        self._on_all_processes(self._load_adapter, dict(adapter))

    def _load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        self.policy.load_adapter_state(adapter)

    def state_dict(self) -> dict[str, Any]:
        """Return `adapter` (or `model`), `optimizer`, `dealer`; in fp16 `scaler`; `kl` if it learns from episodes."""
        state: dict[str, Any] = {
            self.policy.part: self.policy.adapter_state(),
            "optimizer": self.optimizer.state_dict(),
            "dealer": {"state": self._minibatch_rng.get_state(), "seed": self.seed},
        }
        if self._scaler is not None:
            state["scaler"] = self._scaler.state_dict()
        return state if self._kl is None else {**state, "kl": self._kl.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            RC1Error: if it belongs to another seed or another adapter.
        """
        if state["dealer"]["seed"] != self.seed:
            raise RC1Error(
                f"the checkpoint has seed {state['dealer']['seed']}, but this run has seed {self.seed}; use the "
                "checkpoint's seed"
            )
        self._on_all_processes(self._load, dict(state))

    def _load(self, state: Mapping[str, Any]) -> None:
        self.policy.load_adapter_state(state[self.policy.part])
        self.optimizer.load_state_dict(state["optimizer"])
        self._minibatch_rng.set_state(state["dealer"]["state"])
        if self._scaler is not None:
            self._scaler.load_state_dict(state["scaler"])
        if self._kl is not None:
            self._kl.load_state_dict(state["kl"])

    # Timing and worker processes.

    def start_timing(self) -> None:
        """Start the profiler in every process."""
        self._on_all_processes(self._start_timing)

    def _start_timing(self) -> None:
        start_timing(torch.cuda.synchronize if self.device.type == "cuda" else None)

    def timings(self) -> list[list[Timing]]:
        """Stop the profiler and return the timings of each process, the first process first."""
        return self._on_all_processes(self._timings)

    def _timings(self) -> list[list[Timing]]:
        kept, mine = [(one.section.value, one.began, one.ended) for one in stop_timing()], self._shards.mine
        found = self._shards.all_gather({shard: kept if shard == mine[0] else [] for shard in mine})
        return [[Timing(Section(name), began, ended) for name, began, ended in part] for part in found if part]

    def _on_all_processes(self, method: Callable[..., Result], *arguments: Any) -> Result:
        """Call a method of this engine in every process at the same time and return the first one's result."""
        if self._group is None:
            assert self._shards.alone, "the engine was closed"
            return method(*arguments)
        assert self._group.led is self, "the worker processes follow another engine since"
        with self._group.calling(method.__name__, *arguments):
            return method(*arguments)


_SETUP = "setup"
_SHARED = ("_play", "_learn", "_load_adapter", "_load", "_start_timing", "_timings")
"""Methods that every process calls."""


def follow(group: Group) -> None:
    """Build the engines of the first process in a worker process too, and call the methods that it calls.

    Raises:
        LostError: when the first process has ended.
    """
    engine: PolicyEngine | None = None
    while True:
        name, arguments = group.next_call()
        if name == _SETUP:
            engine = None  # free the old policy first; two at once would need twice the memory
            gc.collect()
            config, base, seed = arguments
            setup = Setup.of_run(RunConfig.model_validate_json(config), base, seed)
            engine = cast(PolicyEngine, make_engine(setup.config.training.engine))
            engine._build(setup, group)
            group.all_gather({})
        else:
            assert engine is not None and name in _SHARED, f"found the call '{name}'"
            getattr(engine, name)(*arguments)
