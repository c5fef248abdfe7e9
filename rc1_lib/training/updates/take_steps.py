"""The optimizer steps of an update: minibatches of micro-batches, divided into shards, until the KL stops them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from rc1_lib.config.updates import Steps
from rc1_lib.training.diverged import check_finite
from rc1_lib.training.policy import Policy
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.updates.batch import TokenBatch, micro_batches
from rc1_lib.training.updates.forward import ActionTokens, action_tokens
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.metrics import Tally


class Objective(Protocol):
    """What an algorithm optimises in one update. Each algorithm has one."""

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
        """Whether the policy itself must not change."""
        ...

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """Return the tensors (N,) that `loss` needs of action tokens, by name."""
        ...

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Compute the loss of some action tokens, and sums over them: `loss` and all that `Tally.metrics` uses.

        Args:
            states_nD: the states before the tokens.
            field_n: what `fields` returned, for these tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Result of an update.

    Attributes:
        tally: of all minibatches, including one that exceeded the KL bound.
        gap: mean absolute log-ratio before the first step: 0 if sampling and training agree exactly.
        far: share of tokens before the first step whose log-ratio exceeds `losses.FAR`.
        stopped: whether the KL stopped the update.
    """

    tally: Tally
    gap: float
    far: float
    stopped: bool

    def metrics(self) -> dict[str, float]:
        """Return `update/stopped` (1 if the KL stopped the update), `policy/sampling_gap` and `policy/sampling_far`."""
        return {
            "update/stopped": float(self.stopped),
            "policy/sampling_gap": self.gap,
            "policy/sampling_far": self.far,
        }


def take_steps(
    policy: Policy,
    objective: Objective,
    minibatches: Iterable[Sequence[int]],
    kl_stop: float,
    optimizer_step: OptimizerStep,
    shards: Shards,
) -> UpdateResult:
    """Take one optimizer step per minibatch.

    Before each step, the mean KL between the sampling and the current policy is checked on its minibatch.

    Args:
        policy: updated in place; without active dropout.
        objective: what to optimise.
        minibatches: rows of the objective's batch.
        kl_stop: a larger KL ends the update without that step.
        optimizer_step: over the policy's trainable parameters.
        shards: how the work is divided. Every process calls this with the same arguments and ends with the same bits.

    Raises:
        DivergedError: if, without a gradient scaler, a gradient is not finite.
    """
    check_no_dropout(policy)
    tally, gap, far, stopped = Tally(), math.nan, math.nan, False
    for rows in minibatches:
        seen = gradients_of(policy, objective, rows, optimizer_step, shards)
        if not tally.minibatches:
            gap, far = seen.mean("gap"), seen.mean("far")
        tally.add_minibatch(seen)
        stopped = seen.mean("approxkl") > kl_stop
        if stopped:
            optimizer_step.drop()
            break
        with timed(Section.OPTIMIZER):
            optimizer_step.step()
    return UpdateResult(tally, gap, far, stopped)


def check_no_dropout(policy: Policy) -> None:
    """Check that the policy has no active dropout."""
    assert not any(
        isinstance(module, nn.Dropout) and module.training and module.p > 0 for module in policy.modules()
    ), "dropout is active: ratios would compare two random draws"


def gradients_of(
    policy: Policy, objective: Objective, rows: Sequence[int], optimizer_step: OptimizerStep, shards: Shards
) -> Tally:
    """Accumulate the gradients of a minibatch, shard by shard, one micro-batch at a time.

    Args:
        objective: what to optimise.
        optimizer_step: over the policy's trainable parameters.
        shards: how the work is divided.

    Returns:
        The sums over the minibatch's action tokens.
    """
    lengths = objective.batch.lengths.tolist()
    parts, mine = shards.split(rows, lengths), dict[int, tuple[dict[str, float], int, Gradients]]()
    for shard in shards.mine:
        seen = Tally()
        for part in micro_batches(parts[shard], lengths, objective.update.micro_tokens):
            tokens = action_tokens(objective.batch, part)
            seen.add(add_gradients(policy, objective, tokens, optimizer_step.scale), len(tokens.rows))
        mine[shard] = seen.sums, seen.tokens, optimizer_step.pop_gradients()
    whole = Tally()
    for sums, count, gradients in shards.all_gather(mine):
        whole.add(sums, count)
        optimizer_step.add(gradients)
    return whole


def add_gradients(
    policy: Policy, objective: Objective, tokens: ActionTokens, scale: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Run the forward and backward pass over the action tokens of a micro-batch.

    The graph is cut at the states before action tokens. Above the cut, the logits of a few hundred tokens at a time are
    computed, turned into gradients of their states and freed. One backward pass then takes these gradients through the
    model. The result is the same, but only one chunk of logits is in memory.

    Args:
        objective: what to optimise.
        scale: scales a loss before the backward pass; the identity except in fp16.

    Returns:
        The objective's sums over the action tokens, detached scalars.
    """
    with timed(Section.FORWARD), torch.set_grad_enabled(not objective.frozen):
        hidden_ND = tokens.hidden(policy)
    field_N = objective.fields(tokens)
    totals: dict[str, Tensor] = {}
    gradients: list[Tensor] = []
    for part in tokens.chunks():
        states_nD = hidden_ND[part].detach().requires_grad_(hidden_ND.requires_grad)
        with timed(Section.FORWARD):
            chunk = objective.loss(policy, states_nD, {name: field[part] for name, field in field_N.items()})
        with timed(Section.BACKWARD):
            scale(chunk.loss).backward()  # type: ignore[no-untyped-call]
        if states_nD.grad is not None:
            gradients.append(states_nD.grad)
        for name, value in chunk.sums.items():
            totals[name] = totals[name] + value if name in totals else value
    if gradients:
        with timed(Section.BACKWARD):
            hidden_ND.backward(torch.cat(gradients))  # type: ignore[no-untyped-call]
    return totals


Gradients = dict[int, Tensor]
"""Index of a parameter in its optimizer -> gradient. Parameters without a gradient are left out."""


class OptimizerStep:
    """An optimizer with gradient accumulation, scaling and clipping. Starts by dropping existing gradients."""

    def __init__(self, optimizer: Optimizer, max_grad_norm: float, scaler: torch.amp.GradScaler | None) -> None:
        """Wrap `optimizer`. `scaler` is for fp16 only, and skips steps whose gradients are not finite."""
        self.optimizer, self.max_grad_norm = optimizer, max_grad_norm
        self.scaler = scaler if scaler is not None else torch.amp.GradScaler(enabled=False)
        self.norms: list[float] = []
        self.drop()

    @property
    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def scale(self, loss: Tensor) -> Tensor:
        """Scale a loss for the backward pass."""
        scaled: Tensor = self.scaler.scale(loss)
        return scaled

    def drop(self) -> None:
        """Set the gradients to None, not to zero, so that the optimizer skips frozen parameters."""
        self.optimizer.zero_grad(set_to_none=True)

    def pop_gradients(self) -> Gradients:
        """Return the accumulated gradients and clear those of the parameters."""
        found = {place: each.grad for place, each in enumerate(self._parameters) if each.grad is not None}
        self.drop()
        return found

    def add(self, gradients: Gradients) -> None:
        """Add gradients that `pop_gradients` returned, here or in another process."""
        parameters = self._parameters
        for place, gradient in gradients.items():
            there = parameters[place].grad
            parameters[place].grad = gradient if there is None else there + gradient

    def step(self) -> None:
        """Take one step along the gradients, clipped to the norm over all parameters, and clear them.

        Raises:
            DivergedError: if, without a gradient scaler, the gradients are not finite.
        """
        self.scaler.unscale_(self.optimizer)
        norm = float(clip_grad_norm_(self._parameters, self.max_grad_norm))
        if not self.scaler.is_enabled():
            check_finite(
                f"the gradient's norm at step {len(self.norms) + 1} of the update",
                norm,
                "training has diverged; lower the learning rate, or stop earlier on the KL",
            )
        self.norms.append(norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.drop()

    def metrics(self) -> dict[str, float]:
        """Return `grad_norm`, the mean before clipping (0 without a step), and `update/steps`."""
        return {"grad_norm": sum(self.norms) / max(len(self.norms), 1), "update/steps": float(len(self.norms))}
