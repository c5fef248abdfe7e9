"""One iteration of DPO on the policy's own takes: pair them by their scores, then epochs of minibatches of pairs."""

from __future__ import annotations

from statistics import fmean

import torch
from torch.optim import Optimizer

from rc1_lib.config.updates import Update
from rc1_lib.errors import RC1Error
from rc1_lib.training.dpo.objective import DPOObjective
from rc1_lib.training.dpo.pairs import pairs_of, share_that_differ
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.optimizer_step import OptimizerStep
from rc1_lib.training.updates.reading import ForwardOptions, read_episodes
from rc1_lib.training.updates.take_steps import take_steps
from rc1_lib.training.updates.tally import episode_metrics


def dpo_update(
    policy: PolicyLike,
    batch: EpisodeBatch,
    optimizer: Optimizer,
    section: Update,
    *,
    temperature: float,
    beta: float,
    generator: torch.Generator,
    scaler: torch.amp.GradScaler | None = None,
    shards: Shards = ONE,
) -> dict[str, float]:
    """Learns from the takes of one iteration.

    Sources: Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model" (2023);
    Guo et al., "Direct Language Model Alignment from Online AI Feedback" (2024), for pairs that the policy itself has
    just sampled. The log-probability of an episode is the sum over its own tokens.

    Args:
        policy: stepped in place; without active dropout.
        batch: on the policy's device; takes of one row are one group.
        optimizer: over the policy's trainable parameters; stepped in place.
        section: of the configuration.
        temperature: that tokens were sampled at.
        beta: price of a nat of KL to the reference, above 0.
        generator: on the CPU; deals pairs to minibatches.
        scaler: for fp16 only; a step whose gradients are not finite is then skipped, as it does.
        shards: how reading and learning are dealt out. Every process that has a share calls this with the same
            arguments, and all end with the same bits.

    Returns:
        Metrics of the episodes, the tally, the optimizer's steps and `UpdateResult`; `loss` is the mean over the pairs
        that differ (0 without one), `rewards/margins` and `rewards/accuracies` are theirs, as TRL names them; and those
        of `share_that_differ`.

    Raises:
        RC1Error: when no prompt has two scored takes.
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    pairs = pairs_of(batch.scores, batch.groups)
    if not pairs:
        raise RC1Error("no prompt of this step has two scored takes, so there is no pair to learn from")
    ref_BT = read_episodes(policy, batch, ForwardOptions(section.micro_tokens, temperature), shards).ref_logprobs
    objective = DPOObjective(
        batch=batch,
        pairs=pairs,
        ref_B=ref_BT.sum(dim=1),
        section=section,
        temperature=temperature,
        beta=beta,
        weights=torch.zeros_like(batch.scores),
    )
    optimizer_step = OptimizerStep(optimizer, section.max_grad_norm, scaler)
    taken = take_steps(policy, objective, objective.minibatches(policy, generator, shards), optimizer_step, shards)
    seen = objective.seen
    of_pairs = {
        "loss": fmean(one.loss for one in seen) if seen else 0.0,
        "rewards/margins": fmean(one.margin for one in seen) if seen else 0.0,
        "rewards/accuracies": fmean(one.margin > 0 for one in seen) if seen else 0.0,
        **share_that_differ(pairs),
    }
    of_steps = taken.tally.metrics() | optimizer_step.metrics() | taken.metrics()
    return episode_metrics(batch, ref_BT, beta) | of_steps | of_pairs
