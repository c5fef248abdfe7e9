"""One iteration of GRPO: compare the takes of every prompt, then epochs of minibatches of micro-batches."""

from __future__ import annotations

import torch
from torch.optim import Optimizer

from rc1_lib.training.device import to_device
from rc1_lib.training.grpo.advantages import group_advantages
from rc1_lib.training.grpo.objective import GRPOObjective, token_weights
from rc1_lib.training.grpo.settings import GRPOSettings
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.optimizer_step import OptimizerStep
from rc1_lib.training.updates.reading import ForwardOptions, read_episodes
from rc1_lib.training.updates.take_steps import dealt, take_steps
from rc1_lib.training.updates.tally import episode_metrics


def grpo_update(
    policy: PolicyLike,
    batch: EpisodeBatch,
    optimizer: Optimizer,
    settings: GRPOSettings,
    *,
    kl_coef: float,
    generator: torch.Generator,
    scaler: torch.amp.GradScaler | None = None,
    shards: Shards = ONE,
) -> dict[str, float]:
    """Learns from the takes of one iteration.

    An episode's advantage is that over the other takes of its prompt, and each of its own tokens has it. The old
    log-probabilities are those the tokens were sampled with; the reference's are computed here.

    Sources: Shao et al., "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models" (2024),
    section 4.1; for its variants see `group_advantages`, `token_weights` and `clipped_surrogate`.

    Args:
        policy: stepped in place; without active dropout.
        batch: on the policy's device, at least as many episodes as minibatches; takes of one row are one group.
        optimizer: over the policy's trainable parameters; stepped in place.
        settings: of the update.
        kl_coef: price of a nat of KL to the reference, at least 0; at 0 the KL is still reported.
        generator: on the CPU; deals rows to minibatches.
        scaler: for fp16 only; a step whose gradients are not finite is then skipped, as it does.
        shards: how reading and learning are dealt out. Every process that has a share calls this with the same
            arguments, and all end with the same bits.

    Returns:
        Metrics of the episodes, the tally, the optimizer's steps and `UpdateResult`; `loss/kl_avg`, the mean KL in the
        loss, and `frac_reward_zero_std`, the share of groups that nothing is learned from.

    Raises:
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    grpo, update = settings.grpo, settings.update
    options = ForwardOptions(update.micro_tokens, settings.temperature)
    ref_BT = read_episodes(policy, batch, options, shards).ref_logprobs
    # On the CPU, where sums by group are always added in the same order.
    compared = group_advantages(batch.scores.cpu(), batch.groups.cpu(), grpo.scale_rewards)
    tokens_B = batch.own.sum(dim=1).to(batch.scores.dtype)
    objective = GRPOObjective(
        batch=batch,
        advantages=to_device(compared.advantages, batch.scores.device),
        weights=token_weights(
            tokens_B, grpo.loss_type, minibatches=update.minibatches, most_tokens=settings.most_tokens
        ),
        ref_logprobs=ref_BT,
        settings=settings,
        kl_coef=kl_coef,
    )
    optimizer_step = OptimizerStep(optimizer, update.max_grad_norm, scaler)
    taken = take_steps(policy, objective, dealt(len(batch), update, generator), optimizer_step, shards)
    of_groups = {"loss/kl_avg": taken.tally.each("kl_loss"), "frac_reward_zero_std": compared.flat}
    of_steps = taken.tally.metrics() | optimizer_step.metrics() | taken.metrics()
    return episode_metrics(batch, ref_BT, kl_coef) | of_steps | of_groups
